# Reads go on in a cgroup that is smaller than their file, while observer comes and goes. $1: the folder with this script;
# $2: turns; $3: where results go; $4: a folder for large files; $5: seconds of a stretch; $6: `guest`, or `host`. After
# them what observer is told as --sample, each a way. Results: `slices`, from the workload; `stretches`, when which way (from
# 0 on, or `none`) watched, in seconds since boot; WAY.TURN.summary; `failed` with the reason.
folder=$1 turns=$2 out=$3 scratch=$4 seconds=$5 where=$6
shift 6
. "$folder/settled.sh"

pages=32768 limit=67108864
fail() { echo "$*" > "$out/failed"; exit 1; }

workload= recorder= group=
leave() {
  for child in $workload $recorder; do kill -CONT "$child"; kill "$child"; wait "$child"; done 2> /dev/null
  [ -z "$group" ] || rmdir "$group"
}
trap leave EXIT
trap 'exit 130' INT TERM

make_group() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    root=/sys/fs/cgroup file=memory.max
    echo +memory > $root/cgroup.subtree_control || fail "cannot give control groups a memory limit"
  else
    root=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts) file=memory.limit_in_bytes
  fi
  mkdir "$root/observer-bench" || fail "cannot make a control group in ${root:-any hierarchy with a memory controller}"
  group=$root/observer-bench
  echo $limit > "$group/$file" || fail "cannot limit the memory of $group"
}

# When it is now, in seconds since boot.
now() { cut -d ' ' -f 1 /proc/uptime; }

# The kernel patches running functions when a hook comes or goes; emulated CPUs may execute what is no longer there, and the kernel
# does not survive that.
while_stopped() {
  if [ "$where" = guest ]; then kill -STOP $workload; fi
  "$@"
  if [ "$where" = guest ]; then kill -CONT $workload; fi
}

stretch() {
  begun=$(now)
  sleep "$seconds"
  kill -0 $workload || fail "the workload ended: $(tail -n 1 "$out/workload.stderr")"
  echo "$1 $begun $(now)" >> "$out/stretches"
}

begin() {
  : > "$scratch/run.arrows"
  observer record -o "$scratch/run.arrows" --sample "$1" > "$out/record.stderr" 2>&1 & recorder=$!
  # Nothing else runs while hooks come, not even what looks whether they are there.
  if [ "$where" = guest ]; then sleep 8; fi
  while ! [ -s "$scratch/run.arrows" ]; do
    kill -0 $recorder || { recorder=; fail "observer record: $(tail -n 1 "$out/record.stderr")"; }
    sleep 0.1
  done
}

end() {
  kill $recorder
  wait $recorder
  recorder=
}

watched() {
  while_stopped begin "$2"
  # Neither the census of what is on the lists already is measured, nor the time until a rate is chosen.
  if chooses_rate "--sample $2"; then sleep $choice; else sleep "$seconds"; fi
  stretch "$1"
  while_stopped end
  observer replay "$scratch/run.arrows" --json > "$out/$1.$turn.summary" || fail "observer replay failed"
  rm -f "$scratch/run.arrows"
}

workload make-file --file "$scratch/bench.file" --pages $pages || fail "cannot make a file of $pages pages"
sync
make_group
sh -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" \
  workload zipf-read --file "$scratch/bench.file" --pages $pages --theta 0.9 --seed 5 --reads 100000000000 --slices "$out/slices" \
  > /dev/null 2> "$out/workload.stderr" & workload=$!
# The cgroup is full, and what is popular is in it.
sleep "$((seconds * 2))"
stretch none
for turn in $(seq "$turns"); do
  way=0
  for sample in "$@"; do
    watched $way "$sample"
    # What a recorder leaves behind is written out.
    sleep 2
    stretch none
    way=$((way + 1))
  done
done
rm -f "$scratch/bench.file"

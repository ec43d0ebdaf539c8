# One measured run. $1: what the names of its results begin with; $2: the file to read; $3: reads;
# $4: the tracer's process, `parent`, or nothing where there is no tracer.
read_file() { workload zipf-read --file "$1" --pages 16384 --theta 0.9 --seed 5 --ramp $(($2 / 10)) --reads "$2"; }
pid=${4-}
[ "$pid" = parent ] && pid=$PPID
# Clock ticks that the tracer and the processes that it started ran so far, in user space and in the kernel.
ticks() {
  [ "$pid" ] || return 0
  cat /proc/[0-9]*/stat 2> /dev/null | awk -v pid="$pid" '{ id = $1; sub(/.*\) /, ""); if (id == pid || $2 == pid) print $12, $13 }'
}
ticks > "$1.ticks-before"
read_file "$2" "$3" > "$1.workload" || exit 1
ticks > "$1.ticks-after"
[ "$pid" ] || exit 0
switch=/proc/sys/kernel/bpf_stats_enabled
was=$(cat $switch)
# The kernel's own count of what the programs take costs some time itself: not while reads are timed.
trap 'echo "$was" > $switch' EXIT
trap 'exit 130' INT TERM
echo 1 > $switch || exit 0
cat /proc/"$pid"/fdinfo/* > "$1.before"
read_file "$2" $(($3 / 4)) > /dev/null
cat /proc/"$pid"/fdinfo/* > "$1.after"
exit 0

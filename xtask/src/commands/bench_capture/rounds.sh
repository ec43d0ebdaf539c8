# Every way in turn. $1: the folder with this script, and the peers in bin and lib; $2: rounds; $3: where results go;
# $4: a folder for large files; $5: reads of a run. After them the ways: the name of a function below and its arguments.
# Results are named WAY.ROUND.WHAT, from 0 and 1 on; `base` is the run without a tracer right before it. A way that did not
# work leaves one named `failed` with the reason.
folder=$1 rounds=$2 out=$3 scratch=$4 reads=$5
shift 5
tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs nodev $tracing
# As much room for events in flight as observer takes: 32 MiB.
export BPFTRACE_PERF_RB_PAGES=8192
per_cpu_kib=$((32768 / $(nproc)))

# Interrupted, too, the machine is left as it was.
recorder= load=
leave() {
  for child in $recorder $load; do kill "$child"; done
  [ ! -d $tracing/instances/observer-bench ] || rmdir $tracing/instances/observer-bench
}
trap leave EXIT
trap 'exit 130' INT TERM

. "$folder/settled.sh"

peer() { program=$1; shift; "$folder/lib/ld-linux-x86-64.so.2" --library-path "$folder/lib" "$folder/bin/$program" "$@"; }
measured() { echo "sh $folder/measured.sh $run $scratch/bench.file $reads"; }

nothing() { $(measured) 2> "$run.stderr"; }

observer_records() {
  : > "$scratch/run.arrows"
  observer record -o "$scratch/run.arrows" "$@" > "$run.stderr" 2>&1 & recorder=$!
  while ! [ -s "$scratch/run.arrows" ]; do
    kill -0 $recorder || { recorder=; return 1; }
    sleep 0.1
  done
  # The census of what is on the lists already is not what is measured.
  settled $recorder "$scratch"
  if chooses_rate "$@"; then
    workload zipf-read --file "$scratch/bench.file" --pages 16384 --theta 0.9 --reads 100000000000 > /dev/null & load=$!
    sleep $choice
    kill $load
    wait $load || true
    load=
  fi
  $(measured) $recorder
  status=$?
  kill $recorder
  wait $recorder || true
  recorder=
  observer replay "$scratch/run.arrows" --json > "$run.summary" && wc -c < "$scratch/run.arrows" > "$run.bytes" && return $status
}

# The hooks of observer's tier, those that this kernel has: how, which (the first there is), and the folio.
hooks() {
  if [ $functions = yes ]; then
    cat << '.'
fentry folio_add_lru args.folio
fentry folio_mark_accessed args.folio
fentry lru_gen_refault|workingset_refault args.folio
fexit workingset_eviction args.folio
fentry try_to_shrink_lruvec
fexit try_to_shrink_lruvec
fexit inc_max_seq|try_to_inc_max_seq
fexit folio_inc_gen args.folio
fentry walk_update_folio|folio_update_gen args.folio
fentry lru_gen_set_refs args.folio
fentry lru_gen_look_around
fentry swap_read_folio args.folio
.
  else
    cat << '.'
rawtracepoint mm_filemap_add_to_page_cache arg0
rawtracepoint mm_filemap_get_pages range
rawtracepoint mm_filemap_fault page
rawtracepoint mm_filemap_map_pages range
.
  fi
  cat << '.'
rawtracepoint mm_lru_insertion arg0
rawtracepoint mm_lru_activate arg0
rawtracepoint mm_filemap_delete_from_page_cache arg0
.
}

has() {
  if [ "$1" = rawtracepoint ]; then ls -d $tracing/events/*/"$2" > /dev/null 2>&1; else grep -q "^$2\$" $tracing/available_filter_functions; fi
}

# bpftrace's programs: counts.bt counts with a map for each hook, the dearer but usual keyed.bt in one map by the probe's name,
# records.bt writes a line for each event, with the time, the CPU, and the folio with its flags word or the pages of the file.
scripts() {
  : > "$scratch/counts.bt"; : > "$scratch/keyed.bt"; : > "$scratch/records.bt"; : > "$out/hooks"; : > "$out/hooks-missing"
  number=0
  hooks | while read -r how names folio; do
    found=
    for name in $(echo "$names" | tr '|' ' '); do [ "$found" ] || ! has "$how" "$name" || found=$name; done
    if ! [ "$found" ]; then echo "$names" >> "$out/hooks-missing"; continue; fi
    number=$((number + 1))
    echo "$found" >> "$out/hooks"
    probe=$how:vmlinux:$found
    [ "$how" = rawtracepoint ] && probe=$how:$found
    echo "$probe { @${how}_$found = count(); }" >> "$scratch/counts.bt"
    echo "$probe { @[probe] = count(); }" >> "$scratch/keyed.bt"
    # A line is the time, the CPU, the hook's number, what it is about.
    case "$folio" in
      '') what=; values= ;;
      page) what=' %llu %llu'; values=', ((struct address_space *)arg0)->host->i_ino, arg1' ;;
      range) what=' %llu %llu %llu'; values=', ((struct address_space *)arg0)->host->i_ino, arg1, arg2' ;;
      *) what=' %llx %llx'; values=", $folio, *(uint64 *)$folio" ;;
    esac
    printf '%s { printf("%%llu %%d %d%s\\n", nsecs, cpu%s); }\n' "$probe" $number "$what" "$values" >> "$scratch/records.bt"
  done
}

# Whether functions can be hooked, decided by really attaching.
tier() {
  functions=no
  try="fentry:vmlinux:folio_mark_accessed { @ = count(); }"
  peer bpftrace -e "$try" -c true > "$out/fentry" 2>&1 && functions=yes
  scripts
}

bpftrace_runs() {
  [ "${functions-}" ] || tier
  peer bpftrace -o "$scratch/text" -c "$(measured) parent" "$scratch/$1.bt" > "$run.stderr" 2>&1 || return 1
  # It goes on, and ends well, when it could not attach.
  [ -s "$run.workload" ] || return 1
  wc -c < "$scratch/text" > "$run.bytes"
  grep -c '^[0-9]' "$scratch/text" > "$run.lines"
  grep -v '^[0-9]' "$scratch/text" > "$run.text"
  rm -f "$scratch/text"
  return 0
}

trace_cmd_records() {
  events=
  for event in filemap/mm_filemap_get_pages filemap/mm_filemap_add_to_page_cache filemap/mm_filemap_delete_from_page_cache \
    pagemap/mm_lru_insertion pagemap/mm_lru_activate vmscan/mm_vmscan_lru_shrink_inactive; do
    if [ -d $tracing/events/$event ]; then events="$events -e $(echo $event | tr / :)"; fi
  done
  case "$events" in
    *mm_filemap_get_pages*) ;;
    *) echo "no tracepoint of this kernel tells of a read (mm_filemap_get_pages)" > "$run.stderr"; return 1 ;;
  esac
  # In an instance of its own, function tracing left alone (it may be locked down), the ring as large as observer's.
  peer trace-cmd record -d -k -B observer-bench -b $per_cpu_kib $events -o "$scratch/trace.dat" $(measured) parent > "$run.stderr" 2>&1
  status=$?
  rmdir $tracing/instances/observer-bench
  [ $status = 0 ] || return 1
  wc -c < "$scratch/trace.dat" > "$run.bytes"
  cp "$run.stderr" "$run.sizes"
  peer trace-cmd report --stat -i "$scratch/trace.dat" > "$run.stat" 2>> "$run.stderr" || return 1
  peer trace-cmd report -i "$scratch/trace.dat" 2>> "$run.stderr" | grep -c '\] .*: ' > "$run.lines"
  rm -f "$scratch/trace.dat"
  return 0
}

reasons() { grep -v -e '^$' -e RLIMIT_MEMLOCK "$run.stderr" | tail -n 3 | tr '\n' ' '; }

run=$scratch/unmeasured
nothing || { cat "$run.stderr" >&2; exit 1; }
for round in $(seq "$rounds"); do
  way=0
  for how in "$@"; do
    if ! ls "$out/$way".*.failed > /dev/null 2>&1; then
      # Right before, without a tracer: what else the machine does must be the same for both.
      run=$out/$way.$round.base
      nothing || { cat "$run.stderr" >&2; exit 1; }
      run=$out/$way.$round
      $how || { echo "$how: $(reasons)" > "$run.failed"; }
    fi
    way=$((way + 1))
  done
done
rm -f "$scratch/bench.file" "$scratch/run.arrows"

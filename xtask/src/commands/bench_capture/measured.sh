# One measured run. $1: what the names of its results begin with; $2: the file to read; $3: reads;
# $4: the process whose programs' cost is asked for, `parent`, or nothing.
read_file() { workload zipf-read --file "$1" --pages 16384 --theta 0.9 --seed 5 --ramp $(($2 / 10)) --reads "$2"; }
read_file "$2" "$3" > "$1.workload" || exit 1
pid=${4-}
[ "$pid" ] || exit 0
[ "$pid" = parent ] && pid=$PPID
switch=/proc/sys/kernel/bpf_stats_enabled
was=$(cat $switch)
# The kernel's own count of what the programs take costs some time itself: not while reads are timed.
echo 1 > $switch || exit 0
cat /proc/"$pid"/fdinfo/* > "$1.before"
read_file "$2" $(($3 / 4)) > /dev/null
cat /proc/"$pid"/fdinfo/* > "$1.after"
echo "$was" > $switch
exit 0

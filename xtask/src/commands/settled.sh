# Waits until a process runs for less than a twentieth of the time, or a minute.
settled() {
  was=-100
  for second in $(seq 60); do
    ran=$(awk '{ print $14 + $15 }' "/proc/$1/stat") || return 1
    [ $((ran - was)) -gt 5 ] || return 0
    was=$ran
    sleep 1
  done
}

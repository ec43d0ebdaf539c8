# Waits until observer is done with what it does at its start: until process $1 ran for less than a twentieth of the time, two seconds
# long, or a minute. $2: a folder for files.
settled() {
  # Where the kernel hides its symbols the census waits for a first folio, and in a sample not every one is seen.
  dd if=/dev/zero of="$2/folios" bs=4k count=4096 2> /dev/null
  rm "$2/folios"
  # Nor must it pass for being done while it waits for the disk.
  sync
  was=-100 quiet=0
  for second in $(seq 60); do
    ran=$(awk '{ print $14 + $15 }' "/proc/$1/stat") || return 1
    quiet=$((ran - was > 5 ? 0 : quiet + 1))
    [ $quiet -lt 2 ] || return 0
    was=$ran
    sleep 1
  done
}

# Whether observer, told these arguments, chooses by itself how many folios to observe. Under a load it has chosen after so many
# seconds: it looks every five.
choice=21
chooses_rate() {
  case "$*" in
    *"--sample 1/"*) false ;;
  esac
}

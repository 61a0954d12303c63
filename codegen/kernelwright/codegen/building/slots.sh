# Memory slots: commands that run at once, in whatever build on this machine, never need more memory than it has.
#
#   sh slots.sh run COMMAND…                         start a command of Pants as soon as its slot is free
#   sh slots.sh wait FOLDER MEGABYTES BUDGET FD FILE   wait for a slot, and lock it as the open file FD, which is FILE
#   sh slots.sh busy FOLDER                          print the megabytes of all locked slots
#   sh slots.sh budget [MEMBERSHIP [GROUPS]]         print the megabytes that commands may use
#
# All commands that share a folder share a budget. Each holder keeps a file <unique>.<megabytes> of the folder locked;
# the kernel unlocks it when the last process that has it open ends, however it ends, so nothing needs to be cleaned up.
# A command that waits keeps the file `gate` locked, so requests are served in the order in which they arrive, and large
# ones are not overtaken for ever. It waits for holders only, and holders wait for nothing here: there is no deadlock. A
# request beyond the budget runs alone.
#
# Neither the estimate nor the budget is part of a cache key of Pants: the estimate is in the name of the variable
# KERNELWRIGHT_MEMORY_MB_<megabytes>, in which Pants gives the number of the local slot; the budget is the machine's, or
# the number in `budget_mb` of the folder, `__memory`, a named cache. A remote worker has neither variable nor folder; it
# runs the command at once.

# The megabytes of this machine, or less: of the control groups around this process, of both versions, or of the address
# space that `ulimit -v` leaves. A container may see its own group as the root of the tree, under a name that does not
# exist; then the root counts.
budget() { # MEMBERSHIP GROUPS
  limit=$(($(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo) / 1024))
  as_kb="$(ulimit -v)"
  case "$as_kb" in *[!0-9]*) ;; *) [ $((as_kb / 1024)) -ge "$limit" ] || limit=$((as_kb / 1024)) ;; esac
  while IFS=: read -r _ controllers group; do
    case ",$controllers," in
      ,,) tree="$2" file=memory.max ;;
      *,memory,*) tree="$2/memory" file=memory.limit_in_bytes ;;
      *) continue ;;
    esac
    group="${group%/}"
    while :; do
      granted="$(cat "$tree$group/$file" 2>/dev/null)" || granted=max
      case "$granted" in
        *[!0-9]* | ????????????????*) ;; # "max", or the first version's word for it
        *) [ $((granted / 1048576)) -ge "$limit" ] || limit=$((granted / 1048576)) ;;
      esac
      [ -n "$group" ] || break
      group="${group%/*}"
    done
  done <"$1"
  echo "$limit"
}

# The megabytes of locked slots; removes the files of holders that ended. Only the one who keeps the gate may ask.
busy() { # FOLDER
  total=0
  for held in "$1"/*.[0-9]*; do
    [ -e "$held" ] || continue
    if flock -n "$held" true; then rm -f "$held"; else total=$((total + ${held##*.})); fi
  done
  echo "$total"
}

# Locks FILE, open as FD, as a slot; the name of FILE begins with a dot and then loses it. Opens it as 8 if there is none.
wait_for_slot() { # FOLDER MEGABYTES BUDGET FD FILE
  exec 9>>"$1/gate"
  flock 9
  while :; do
    taken="$(busy "$1")"
    [ "$taken" -gt 0 ] || break
    [ $((taken + $2)) -gt "${3:-$(budget /proc/self/cgroup /sys/fs/cgroup)}" ] || break
    sleep 0.1
  done
  [ -e "$5" ] || exec 8>"$5"
  flock "$4"
  mv "$5" "$1/${5##*/.}"
  exec 9>&-
}

path="${PATH-}"
PATH=/usr/bin:/bin
mode="$1"
shift
case "$mode" in
  budget) budget "${1:-/proc/self/cgroup}" "${2:-/sys/fs/cgroup}" ;;
  busy) busy "$1" ;;
  wait) wait_for_slot "$@" ;;
  run)
    for memory in $(env | sed -n 's/^KERNELWRIGHT_MEMORY_MB_\([0-9]*\)=.*/\1/p'); do
      unset "KERNELWRIGHT_MEMORY_MB_$memory"
      command -v flock >/dev/null && [ -d __memory ] && [ -r /proc/meminfo ] || continue
      slot="__memory/.$$-$(date +%s%N).$memory"
      wait_for_slot __memory "$memory" "$(cat __memory/budget_mb 2>/dev/null)" 8 "$slot"
    done
    PATH="$path"
    exec "$@"
    ;;
esac

"""How a command of a plan starts: with sound inputs, as soon as there is memory for it.

Pants does not look at what it reads from its local store, so a damaged file would be compiled or linked. Each command
starts in a shell that compares its inputs with the digests in ``__inputs.sha256``.

Nor does Pants know of megabytes. Commands that run at once, for whatever daemon of this user, never need more memory
than there is: the shell waits, by the protocol of ``kernelwright.codegen.building.memory``. Whoever runs keeps a file
``<unique>.<megabytes>`` of a named cache locked, and whoever waits keeps ``gate`` locked. The command itself inherits
the lock; the kernel releases it when the command ends, however it ends.

Neither the estimate nor the budget is part of a cache key: the estimate is the name of the variable in which Pants
gives the number of the local slot, the budget is that of the machine, of the control groups around the command or of
``ulimit -v``, or the number in ``budget_mb`` of the named cache. A remote worker has neither variable nor named cache;
it runs the command at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

_VARIABLE = "KERNELWRIGHT_MEMORY_MB_"
_WAIT = r"""
path="${PATH-}"
PATH=/usr/bin:/bin
if [ -s __inputs.sha256 ] && command -v sha256sum >/dev/null; then
  sha256sum --check --quiet __inputs.sha256 >&2 || exit 87
fi
for memory in $(env | sed -n 's/^KERNELWRIGHT_MEMORY_MB_\([0-9]*\)=.*/\1/p'); do
  unset "KERNELWRIGHT_MEMORY_MB_$memory"
  command -v flock >/dev/null && [ -d __memory ] && [ -r /proc/meminfo ] || continue
  budget="$(cat __memory/budget_mb 2>/dev/null)" || budget=
  exec 9>>__memory/gate
  flock 9
  while :; do
    total="$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
    limit="$budget"
    if [ -z "$limit" ]; then
      limit=$((total / 1024))
      as_kb="$(ulimit -v)"
      case "$as_kb" in *[!0-9]*) ;; *) [ $((as_kb / 1024)) -ge "$limit" ] || limit=$((as_kb / 1024)) ;; esac
      while IFS=: read -r number controllers group; do
        case ",$controllers," in
          ,,) tree=/sys/fs/cgroup file=memory.max ;;
          *,memory,*) tree=/sys/fs/cgroup/memory file=memory.limit_in_bytes ;;
          *) continue ;;
        esac
        group="${group%/}"
        while :; do
          granted="$(cat "$tree$group/$file" 2>/dev/null)" || granted=max
          case "$granted" in
            *[!0-9]* | ????????????????*) ;;
            *) [ $((granted / 1048576)) -ge "$limit" ] || limit=$((granted / 1048576)) ;;
          esac
          [ -n "$group" ] || break
          group="${group%/*}"
        done
      done </proc/self/cgroup
    fi
    busy=0
    for held in __memory/*.[0-9]*; do
      [ -e "$held" ] || continue
      if flock -n "$held" true; then rm -f "$held"; else busy=$((busy + ${held##*.})); fi
    done
    [ $busy -gt 0 ] && [ $((busy + memory)) -gt "$limit" ] || break
    sleep 0.1
  done
  exec 8>"__memory/$$-$(date +%s%N).$memory"
  flock 8
  exec 9>&-
done
PATH="$path"
exec "$@"
"""


@dataclass(frozen=True)
class Slot:
    """What a Process needs to wait for its memory; its own caches may join."""

    argv: tuple[str, ...]
    variable: str
    caches: Mapping[str, str]


def waiting(argv: tuple[str, ...], memory_mb: int) -> Slot:
    """``argv``, started as soon as ``memory_mb`` megabytes are free."""
    return Slot(("/bin/sh", "-c", _WAIT, "slot", *argv), f"{_VARIABLE}{memory_mb}", {"kernelwright_memory": "__memory"})

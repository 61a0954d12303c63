"""Run a command as a child and write its CPU seconds and peak memory: ``cost.py RESULT.json COMMAND [ARGUMENT …]``."""

import json
import os
import sys


def main() -> int:
    """Run the command. Returns its exit code.

    ``cpu_s`` is user plus system time of the command and all its children, ``peak_mb`` the largest resident size of one
    of these processes.
    """
    result, command = sys.argv[1], sys.argv[2:]
    child = os.posix_spawn(command[0], command, dict(os.environ))
    _, status, usage = os.wait4(child, 0)
    cost = {"cpu_s": round(usage.ru_utime + usage.ru_stime, 3), "peak_mb": round(usage.ru_maxrss / 1024, 1)}
    with open(result, "w", encoding="ascii") as stream:
        json.dump(cost, stream)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())

"""Commands that failed: their output, kept until something that they read changes."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.store import read_json, write_atomically

# Messages of a full disk or too little memory: such a failure says nothing about the command's inputs.
_TRANSIENT = (
    *("no space left", "nospaceleft", "disk quota exceeded", "input/output error", "inputoutput"),
    *("cannot allocate memory", "out of memory", "outofmemory", "bad_alloc", "systemresources", "memory exhausted"),
    *(
        "insufficient memory",
        "not enough memory",
        "memory allocation failure",
        "too many open files",
        "fdquotaexceeded",
    ),
    *("resource temporarily unavailable", "text file busy"),
)
# Messages of a driver or shell when the program that it started was killed: by the out-of-memory killer, a user, a
# batch system, or a full disk under a mapped file (bus error). Drivers of gcc, clang and nvcc then exit with 1 or 255.
_KILLED = re.compile(
    r"\b(killed|terminated|hangup|interrupt) signal terminated program\b"
    r"|\bunable to execute command: (killed|terminated|hangup|interrupt|bus error)"
    r"|\bterminated with signal (1|2|7|9|15)\b"
    r"|\bdied due to signal (1|2|7|9|15)\b"
    r"|^(\S+: (line )?\d+: +(\d+ +)?)?(killed|terminated)( |$)",
    re.IGNORECASE | re.MULTILINE,
)
_KILLED_EXIT_CODES = frozenset(
    128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGBUS, signal.SIGKILL, signal.SIGTERM)
)
# Exit codes by which shells report a signal; a crash of the compiler itself (SIGSEGV, SIGABRT) is not among them.


class ActionError(RuntimeError):
    """A command that failed or did not write an output; the message holds everything that it printed.

    ``record`` is the file that remembers the failure, if one does.
    """

    def __init__(self, action: Action, reason: str, output: str, record: Path | None = None) -> None:
        self.action = action
        self.reason = reason
        self.output = output
        self.record = record
        again = f" before, and nothing that it reads has changed; to run it again remove {record}" if record else ""
        super().__init__(f"{action.description}: {reason}{again}\n{' '.join(action.argv)}\n{output}".rstrip())


class TimeLimitError(ActionError):
    """A command that exceeded its time limit, and was ended with all that it had started."""

    def __init__(self, action: Action, limit_s: float, output: str, record: Path | None = None) -> None:
        self.limit_s = limit_s
        super().__init__(
            action,
            f"took more than its limit of {limit_s:g} seconds (timeout_s, --timeout) and was ended",
            output,
            record,
        )


class BuildError(RuntimeError):
    """Several commands of one build failed; ``errors`` holds each with its output."""

    def __init__(self, errors: Sequence[ActionError]) -> None:
        self.errors = tuple(errors)
        listed = "\n\n".join(str(error) for error in errors)
        super().__init__(f"{len(errors)} commands failed:\n{listed}")


def remember(record: Path, error: ActionError, exit_code: int) -> None:
    """Record a failure that would happen again: the command ended by itself and had disk and memory.

    ``exit_code`` is not 0; a negative value is minus the signal that ended the command.
    """
    text = error.output.lower()
    killed = exit_code < 0 or exit_code in _KILLED_EXIT_CODES or _KILLED.search(text)
    if not killed and not any(sign in text for sign in _TRANSIENT):
        kept = {"description": error.action.description, "reason": error.reason, "output": error.output}
        write_atomically(record, json.dumps(kept).encode())


def remember_time_limit(record: Path, error: TimeLimitError) -> None:
    """Record that a command took too long, for as long again: processes that wait for it need not each try in turn.

    Later it is tried again, since the machine may have been busy.
    """
    kept = {"description": error.action.description, "limit_s": error.limit_s, "until": time.time() + error.limit_s}
    write_atomically(record, json.dumps({**kept, "output": error.output}).encode())


def remembered(record: Path, action: Action, timeout_s: float) -> ActionError | None:
    """Return the failure recorded at ``record`` if it would happen again to a command limited to ``timeout_s``."""
    kept = read_json(record)
    if kept is None:
        return None
    limit_s, until = kept.get("limit_s"), kept.get("until")
    if isinstance(limit_s, (int, float)) and isinstance(until, (int, float)):
        again = time.time() < until and timeout_s <= limit_s
        return TimeLimitError(action, limit_s, str(kept.get("output", "")), record) if again else None
    if not {"reason", "output"} <= set(kept):
        return None
    return ActionError(action, str(kept["reason"]), str(kept["output"]), record)

"""Commands that failed: what they printed, kept until something that they read changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tilewright.codegen.plan import Action
from tilewright.codegen.store import read_json, write_atomically

# What a full disk or too little memory prints: such a failure says nothing about the command's inputs.
_TRANSIENT = (
    *("no space left", "nospaceleft", "disk quota exceeded", "input/output error", "inputoutput"),
    *("cannot allocate memory", "out of memory", "outofmemory", "bad_alloc", "systemresources"),
    *("too many open files", "fdquotaexceeded", "resource temporarily unavailable", "text file busy"),
)


class ActionError(RuntimeError):
    """A command that failed or left an output out; the message holds everything it printed.

    ``record`` is the file that remembers it, if it does.
    """

    def __init__(self, action: Action, reason: str, output: str, record: Path | None = None) -> None:
        self.action = action
        self.reason = reason
        self.output = output
        self.record = record
        again = f" before, and nothing that it reads has changed; to run it again remove {record}" if record else ""
        super().__init__(f"{action.description}: {reason}{again}\n{' '.join(action.argv)}\n{output}".rstrip())


class BuildError(RuntimeError):
    """Several commands of one build failed; ``errors`` holds each with its output."""

    def __init__(self, errors: Sequence[ActionError]) -> None:
        self.errors = tuple(errors)
        listed = "\n\n".join(str(error) for error in errors)
        super().__init__(f"{len(errors)} commands failed:\n{listed}")


def remember(record: Path, error: ActionError, exit_code: int) -> None:
    """Keep a failure that will happen again: the command ended by itself and had disk and memory."""
    text = error.output.lower()
    if exit_code > 0 and not any(sign in text for sign in _TRANSIENT):
        kept = {"description": error.action.description, "reason": error.reason, "output": error.output}
        write_atomically(record, json.dumps(kept).encode())


def remembered(record: Path, action: Action) -> ActionError | None:
    """The failure that was kept at ``record``."""
    kept = read_json(record)
    if kept is None or not {"reason", "output"} <= set(kept):
        return None
    return ActionError(action, str(kept["reason"]), str(kept["output"]), record)

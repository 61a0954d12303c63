"""Rewrites a header: parts of it, found by anchors, are replaced by text of our own.

Anchors are short pieces of the header. Each must be found exactly as often as expected, and the header must have the
digest that the edits were written for: a new release of the header is read by a person before it is rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelwright.codegen.violations import SpecError


@dataclass(frozen=True)
class Edit:
    """Replaces what is between ``after`` and the next ``before``, which both stay, by ``text``.

    An empty ``before`` is the header's end. ``after`` is found ``times`` times, each with the same replacement. With a
    ``tail``, what is between stays too: ``text`` goes before it and ``tail`` after it.
    """

    after: str
    before: str
    text: str
    times: int = 1
    tail: str | None = None


@dataclass(frozen=True)
class Swap:
    """Replaces ``old``, which is found ``times`` times, by ``text``."""

    old: str
    text: str
    times: int = 1


@dataclass(frozen=True)
class Without:
    """Leaves out lines that ``pattern`` matches from their start; there are ``times`` of them."""

    pattern: str
    times: int


@dataclass(frozen=True)
class Header:
    """A header by its path below the root of the tree, the sha256 of its bytes, and its edits.

    Edits are made in order, each on the result of the one before.
    """

    path: str
    sha256: str
    edits: tuple[Edit | Swap | Without, ...]


def rewritten(headers: Sequence[Header], read: Callable[[str], bytes]) -> Mapping[str, str]:
    """Return the new text of each header by its path; ``read`` returns the bytes at a path.

    SpecError for a header whose digest differs from the one that its edits were written for, or that lacks an anchor.
    """
    return {header.path: _rewrite(header, read(header.path)) for header in headers}


def _rewrite(header: Header, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    if digest != header.sha256:
        raise SpecError(
            f"{header.path} has the sha256 {digest}; allowed: {header.sha256}, for which its rewriting was written; "
            "install the pinned release"
        )
    text = data.decode("utf-8")
    for edit in header.edits:
        text = _applied(header.path, text, edit)
    return text


def _applied(path: str, text: str, edit: Edit | Swap | Without) -> str:
    if isinstance(edit, Edit):
        return _edited(path, text, edit)
    if isinstance(edit, Swap):
        return _swapped(path, text, edit)
    return _shortened(path, text, edit)


def _shortened(path: str, text: str, edit: Without) -> str:
    left = [line for line in text.splitlines(keepends=True) if not re.match(edit.pattern, line)]
    removed = len(text.splitlines()) - len(left)
    if removed != edit.times:
        raise SpecError(f"{path} holds {edit.pattern!r} in {removed} lines; its rewriting expects {edit.times}")
    return "".join(left)


def _swapped(path: str, text: str, swap: Swap) -> str:
    occurrences = text.count(swap.old)
    if occurrences != swap.times:
        raise SpecError(f"{path} holds {swap.old!r} {occurrences} times; its rewriting expects {swap.times}")
    return text.replace(swap.old, swap.text)


def _edited(path: str, text: str, edit: Edit) -> str:
    head, *rest = text.split(edit.after)
    if len(rest) != edit.times:
        raise SpecError(f"{path} holds {edit.after!r} {len(rest)} times; its rewriting expects {edit.times}")
    for part in rest:
        between, separator, rest_of_it = part.partition(edit.before) if edit.before else (part, "", "")
        if separator != edit.before:
            raise SpecError(f"{path} lacks {edit.before!r} after {edit.after!r}, up to which it is rewritten")
        new = edit.text if edit.tail is None else f"{edit.text}{between}{edit.tail}"
        head += f"{edit.after}{new}{separator}{rest_of_it}"
    return head

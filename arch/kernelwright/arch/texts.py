"""Texts from outside: JSON without repeated keys, and messages that repeat input but stay short."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_WORD = re.compile(r"[^\s,;]{400,}")
_MAX_LINE = 4000


def parse_json(text: str) -> Any:
    """The value of a JSON text; ValueError if it is none or an object has a key twice, RecursionError if too deep."""
    return json.loads(text, object_pairs_hook=_object)


def shortened(message: str) -> str:
    """``message`` with the middle of every long word and the end of every long line left out.

    Kernel names and paths of usual length (up to 400 characters) stay whole.
    """
    lines = _WORD.sub(lambda word: _cut(word[0], 60), message).split("\n")
    return "\n".join(line if len(line) <= _MAX_LINE else _cut(line, _MAX_LINE // 2) for line in lines)


def _cut(text: str, ends: int) -> str:
    return f"{text[:ends]}… ({len(text)} characters) …{text[-ends:]}"


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice in one object; keep one of them")
    return found

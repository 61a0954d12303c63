"""JSON written by others: UTF-8 of bounded size and depth, unique keys in each object, finite numbers of usual length.

It needs the standard library alone, as the bindings that read manifests with it need NumPy alone.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any

MAX_BYTES = 64 << 20
"""The largest file in bytes."""
MAX_DEPTH = 100
"""The deepest nesting of objects and lists."""
MAX_WHOLE_DIGITS = 40
"""The most characters of a whole number."""
MAX_NUMBER = 400
"""The most characters of a number with a point or an exponent."""
_ESCAPED = re.compile(r"\\u(?:0000|d[89a-f])", re.IGNORECASE)


class JsonError(ValueError):
    """A text that breaks the rules of this module. The message is the end of a sentence that names the file."""


def read_json(path: str | os.PathLike[str], most_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a file of at most ``most_bytes``; OSError if it cannot be read, else JsonError."""
    with open(path, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise JsonError(f"it has more than {most_bytes} bytes; allowed: at most that many")
    return parse_json(data)


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; JsonError if it is not JSON, or breaks a rule of this module."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        document = json.loads(
            decoded, object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise JsonError(f"byte {error.start} is not UTF-8; allowed: UTF-8") from None
    except RecursionError:
        raise JsonError(f"it is nested deeper than {MAX_DEPTH} levels; allowed: at most that many") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} in line {error.lineno}, column {error.colno}") from None
    _check_depth(document)
    if _ESCAPED.search(decoded):
        _check_texts(document)
    return document


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonError(f"the key {key!r:.80} is given twice in one object; keep one of them")
            seen.add(key)
    return members


def _whole(digits: str) -> int:
    if len(digits) > MAX_WHOLE_DIGITS:
        raise JsonError(f"the number {digits[:20]}… has {len(digits)} characters; allowed: {MAX_WHOLE_DIGITS}")
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > MAX_NUMBER:
        raise JsonError(f"the number {digits[:20]}… has {len(digits)} characters; allowed: {MAX_NUMBER}")
    value = float(digits)
    if not math.isfinite(value):
        raise JsonError(f"the number {digits} is too large; allowed: numbers that a double can hold")
    return value


def _refuse_constant(word: str) -> float:
    raise JsonError(f"{word} is no number of JSON; allowed: finite numbers")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise JsonError(f"it is nested deeper than {MAX_DEPTH} levels; allowed: at most that many")


def _check_texts(value: Any) -> None:
    """Refuse texts with a NUL, which ends paths, or half of a surrogate pair, which nothing can write."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += (*one, *one.values())
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str) and ("\0" in one or any("\ud800" <= letter <= "\udfff" for letter in one)):
            raise JsonError(f"the text {one!r:.80} holds a NUL or half of a surrogate pair; remove it")

"""Messages that repeat input but stay short."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\s,;]{400,}")
_MAX_LINE = 4000


def shortened(message: str) -> str:
    """Return ``message`` with the middle of every long word and the end of every long line left out.

    Kernel names and paths of usual length (up to 400 characters) stay whole. Unprintable characters are escaped, so
    that input repeated in a message cannot move the cursor or colour the terminal.
    """
    lines = _WORD.sub(lambda word: _cut(word[0], 60), _printable(message)).split("\n")
    return "\n".join(line if len(line) <= _MAX_LINE else _cut(line, _MAX_LINE // 2) for line in lines)


def _printable(text: str) -> str:
    if text.replace("\n", "").isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)


def _cut(text: str, ends: int) -> str:
    return f"{text[:ends]}… ({len(text)} characters) …{text[-ends:]}"

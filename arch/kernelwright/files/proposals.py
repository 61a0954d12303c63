"""Suggestions for a misspelt word of a closed list."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(text: object, allowed: Iterable[str]) -> str:
    """Return `` (did you mean …?)`` with the entry of ``allowed`` closest to ``text``; "" if none is close."""
    close = difflib.get_close_matches(text, list(allowed), n=1, cutoff=0.6) if isinstance(text, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""

"""Results files: JSON with one line per result, so that a run changes few lines of a diff."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def text(head: Mapping[str, Any], results: Sequence[Any], key: str = "results") -> str:
    """``head`` with ``results`` under ``key``, at the end."""
    start = json.dumps(head, indent=1).removesuffix("\n}")
    rows = ",\n  ".join(map(json.dumps, results))
    return f'{start},\n "{key}": [\n  {rows}\n ]\n}}\n'

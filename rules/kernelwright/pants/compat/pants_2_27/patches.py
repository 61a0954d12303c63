"""Speed tuning of the Pants process: none is needed (docs/compatibility.md has the figures)."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"


def tune_process() -> None:
    """Do nothing: Pants hashes requests for files by their contents since 2.25, and daemons take half the memory."""

"""Changes to Pants itself: none is needed."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"


def hash_file_requests() -> None:
    """Nothing: requests for files have hashes of their contents since Pants 2.25."""

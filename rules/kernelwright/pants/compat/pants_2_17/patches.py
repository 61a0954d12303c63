"""Speed tuning of the process of Pants 2.17, for workspaces with thousands of kernels.

The figures are of 10,000 kernels (docs/benchmarks.md, "Ten thousand kernel targets"; ``benchmarks/build/patches.py``).
"""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

from pants.engine.fs import CreateDigest


def tune_process() -> None:
    """Let requests for files have hashes of their contents; Pants 2.17.1 hashes their type ``typing.Tuple``.

    Each new request was compared with every former one: 35 CPU s for 10,000 of them, which grows with the square, and
    0.02 s with this. A daemon that has been tuned stays so until it ends.
    """
    CreateDigest.__hash__ = tuple.__hash__  # type: ignore[assignment,method-assign]

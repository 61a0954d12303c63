"""Speed tuning of the Pants 2.17 process, for workspaces with thousands of kernels.

The figures are for 10,000 kernels (docs/benchmarks.md, "Ten thousand kernel targets"; ``benchmarks/build/patches.py``).
"""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

from pants.engine.fs import CreateDigest


def tune_process() -> None:
    """Hash requests for files by their contents; Pants 2.17.1 hashes their type ``typing.Tuple``.

    Otherwise each new request is compared with every former one: 35 CPU s for 10,000 of them, which grows with the
    square, and 0.02 s with this. A tuned daemon stays tuned until it ends.
    """
    CreateDigest.__hash__ = tuple.__hash__  # type: ignore[assignment,method-assign]

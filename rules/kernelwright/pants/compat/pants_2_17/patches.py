"""Changes to Pants itself, which this version needs."""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

from pants.engine.fs import CreateDigest


def hash_file_requests() -> None:
    """Let requests for files have hashes of their contents; Pants 2.17.1 hashes their type ``typing.Tuple``.

    Each new request was compared with every former one, which took a second for each hundred kernels in a build of
    thousands.
    """
    CreateDigest.__hash__ = tuple.__hash__  # type: ignore[assignment,method-assign]

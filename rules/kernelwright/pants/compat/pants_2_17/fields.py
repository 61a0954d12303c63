"""Fields with a different meaning in this generation."""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

from pants.core.goals.package import OutputPathField


class LibraryOutputPathField(OutputPathField):
    """``output_path`` of a library; None where the BUILD file omits it."""

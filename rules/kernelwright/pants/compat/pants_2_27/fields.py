"""Fields with a different meaning in this generation."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"

from typing import ClassVar, Optional

from pants.core.goals.package import OutputPathField


class LibraryOutputPathField(OutputPathField):
    """``output_path`` of a library; None where the BUILD file omits it.

    The default of Pants' own field is a template, which the plugin would take for a path.
    """

    default: ClassVar[Optional[str]] = None  # type: ignore[assignment]  # the base class has a default

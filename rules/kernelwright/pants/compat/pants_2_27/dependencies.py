"""Dependencies of the kernels of a set: Pants resolves those of each kernel."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"

from typing import Optional

from pants.engine.target import Target


class SharingTarget(Target):
    """A target that could share its dependencies with all targets of the same ``expansion``, and does not."""

    @property
    def expansion(self) -> Optional[str]:
        """What the target has in common with others; None if it shares nothing."""
        raise NotImplementedError

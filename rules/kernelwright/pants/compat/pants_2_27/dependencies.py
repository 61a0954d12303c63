"""Dependencies of the kernels of a set, which Pants resolves for each kernel."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"

from typing import Optional

from pants.engine.target import Target


class SharingTarget(Target):
    """A target that could share its dependencies with all targets of the same ``expansion``, and does not."""

    @property
    def expansion(self) -> Optional[str]:
        """An identifier shared by targets with the same dependencies; None if the target shares nothing."""
        raise NotImplementedError

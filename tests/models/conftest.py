"""The CPU kernels of tests/pytorch in use."""

from pytorch.conftest import dispatcher, in_use

__all__ = ["dispatcher", "in_use"]

"""The device that the tests use, $KERNELWRIGHT_GPU_ORDINAL, and the current one, $KERNELWRIGHT_GPU_CURRENT.

Both are 0 unless set; where only the first is set, they are the same. Where they differ, everything but torch's own
work must find the device without help from the current one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

ORDINAL = int(os.environ.get("KERNELWRIGHT_GPU_ORDINAL", "0"))
CURRENT = int(os.environ.get("KERNELWRIGHT_GPU_CURRENT", str(ORDINAL)))
DEVICE = f"cuda:{ORDINAL}"


def synchronize() -> None:
    """Wait for the device under test."""
    import torch

    torch.cuda.synchronize(DEVICE)


def current_stream() -> int:
    """torch's current stream of the device under test."""
    import torch

    return int(torch.cuda.current_stream(DEVICE).cuda_stream)


@contextmanager
def on_new_stream() -> Iterator[None]:
    """A stream of the device under test is torch's current one of that device; the current device stays."""
    import torch

    with torch.cuda.stream(torch.cuda.Stream(DEVICE)), torch.cuda.device(CURRENT):
        yield


def sleep() -> None:
    """Occupy the current stream of the device under test for some hundredths of a second."""
    import torch

    with torch.cuda.device(DEVICE):
        torch.cuda._sleep(50_000_000)

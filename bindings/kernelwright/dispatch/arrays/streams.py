"""Choose the stream of a launch: the given one, else the current one of the operands' array libraries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelwright.dispatch.arrays.view import Prepared, is_torch
from kernelwright.dispatch.core import workspace


def launch_stream(operands: Iterable[Any], stream: int | None, device: str) -> int | None:
    """Return ``stream`` if given, else the current stream of the operands' libraries on ``device``.

    Returns None on the CPU. Raises ArrayError if libraries have different current streams.
    """
    if stream is not None or device == "cpu":
        return stream
    return workspace.common_stream({_family(array) for array in operands if array is not None}, device)


def _family(array: Any) -> str:
    if isinstance(array, Prepared):
        array = array.data
    if is_torch(array):
        return "torch"
    return "numpy" if isinstance(array, np.ndarray) else type(array).__module__.partition(".")[0]

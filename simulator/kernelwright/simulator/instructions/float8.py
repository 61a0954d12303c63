"""fp8 (e4m3) and bf8 (e5m2) as a target defines them: FNUZ on gfx942, OCP on gfx950 and gfx12.

Conversion from fp32 rounds to nearest even. Beyond the largest number: NaN, but infinity for OCP bf8 (OCP 8-bit
floating point specification, section 5.2; CDNA3 ISA guide, "FP8 and BF8"); with MODE.FP16_OVFL the largest number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine import modes

_DTYPES: dict[tuple[str, str], Any] = {
    ("fnuz", "fp8"): ml_dtypes.float8_e4m3fnuz,
    ("fnuz", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("ocp", "fp8"): ml_dtypes.float8_e4m3fn,
    ("ocp", "bf8"): ml_dtypes.float8_e5m2,
}


def dtype(target: Target, kind: str) -> Any:
    """The NumPy type of ``fp8`` or ``bf8``. Unmodelled on a target without them."""
    numpy_type = _DTYPES.get((target.float8, kind))
    if numpy_type is None:
        raise Unmodelled(f"{kind} on {target.name}, which has no such instructions")
    return numpy_type


@cache
def values(target: Target, kind: str) -> NDArray[np.float32]:
    """The 256 values, by encoding."""
    table: NDArray[np.float32] = np.arange(256, dtype=np.uint8).view(dtype(target, kind)).astype(np.float32)
    table.flags.writeable = False
    return table


def encode(numbers: Any, target: Target, kind: str, mode: int) -> Any:
    """fp32 → bytes. Unmodelled for infinity if the mode saturates: the guides do not say whether it stays infinite."""
    wanted = dtype(target, kind)
    if mode & modes.OVERFLOW:
        if np.count_nonzero(np.isinf(numbers)):
            raise Unmodelled(f"infinity to {kind} with FP16_OVFL set")
        table = values(target, kind)
        most = table[np.isfinite(table)].max()
        numbers = np.clip(numbers, -most, most)
    return numbers.astype(wanted).view(np.uint8)

"""Element types: their names here, their numbers in the C ABI, and their names in array libraries."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from kernelwright.dispatch.core.errors import ArrayError, ProblemError
from kernelwright.files.proposals import closest
from kernelwright.problems.shared import ITEM_BYTES, DType

CODES = DType.codes
NAMES = DType.names
ITEMSIZE = ITEM_BYTES

# NumPy, ml_dtypes, torch and JAX agree on these names, apart from torch's "torch." prefix.
_BY_NAME = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "bf8",
    "float8_e5m2fnuz": "bf8",
    "int8": "int8",
    "int32": "int32",
}

# Dtype objects seen so far: Python computes their names anew each time.
_KNOWN: dict[Hashable, tuple[str, bool]] = {}


def name_of(array_dtype: Hashable, of: str = "") -> tuple[str, bool]:
    """Return the name of an array library's dtype and whether it is FNUZ; ArrayError if no kernel has it.

    ``of`` is what the error calls the array.
    """
    known = _KNOWN.get(array_dtype)
    if known is not None:
        return known
    text = str(getattr(array_dtype, "name", array_dtype)).rpartition(".")[2]
    name = _BY_NAME.get(text)
    if name is None:
        raise ArrayError(f"{of and f'{of}: '}dtype {text} is served by no kernel; allowed: {', '.join(_BY_NAME)}")
    return _KNOWN.setdefault(array_dtype, (name, text.endswith("fnuz")))


def check(field: str, name: str) -> str:
    """Return ``name`` if it names a dtype. Raises ProblemError otherwise."""
    if name not in CODES:
        raise ProblemError(f"{field} is {name!r}{closest(name, CODES)}; allowed: {', '.join(CODES)}")
    return name


def numpy_dtype(name: str, fnuz: bool = False) -> np.dtype[Any]:
    """NumPy's dtype of this name. bf16, fp8 and bf8 need the ml_dtypes package: ArrayError if it is missing."""
    plain = {"fp32": np.float32, "fp16": np.float16, "int8": np.int8, "int32": np.int32}
    if name in plain:
        return np.dtype(plain[name])
    try:
        import ml_dtypes
    except ImportError:
        raise ArrayError(f"NumPy has no {name}; install ml_dtypes, or pass out=") from None
    ocp = {"bf16": "bfloat16", "fp8": "float8_e4m3fn", "bf8": "float8_e5m2"}
    names = {**ocp, "fp8": "float8_e4m3fnuz", "bf8": "float8_e5m2fnuz"} if fnuz else ocp
    return cast("np.dtype[Any]", np.dtype(getattr(ml_dtypes, names[name])))

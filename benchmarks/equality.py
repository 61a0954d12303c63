"""When two outputs count as equal: a ratio of times is meaningful only between calls that compute the same."""

from __future__ import annotations

from collections.abc import Mapping

# Largest relative error ‖output - reference‖ / ‖reference‖ against float64. One and a half units of the output's
# rounding leave room for partial sums that torch rounds to 16 bits; a product that lacks one tile of 64 in K = 24576
# is off by 0.05.
_ROUNDING = {"fp32": 2.0**-23, "fp16": 2.0**-11, "bf16": 2.0**-8, "int32": 0.0}
# Tensor cores of Hopper accumulate 8-bit floats in about 14 bits and truncate, once per 32 of K: every library loses
# up to 0.02 at K = 16384. A missing tile of 128 is 0.08 there.
_FP8 = 0.05
_FP32_SUMS = 1e-5


class UnequalOutputsError(Exception):
    """A call's output is too far from the reference; its time is not reported."""


def error_limit(dtype: str, output: str) -> float:
    """The largest relative error (norm of the difference ÷ norm of the reference) allowed for these dtypes."""
    if dtype in ("fp8", "bf8"):
        return _FP8
    return max(1.5 * _ROUNDING[output], 0.0 if output == "int32" else _FP32_SUMS)


def unequal(errors: Mapping[str, float], limit: float) -> dict[str, float]:
    """Calls whose relative error exceeds ``limit`` or is not a number."""
    return {name: error for name, error in errors.items() if not error <= limit}


def require_equal(errors: Mapping[str, float], limit: float, what: str) -> None:
    """Raise UnequalOutputsError unless every relative error is at most ``limit``; ``what`` names the computation."""
    off = unequal(errors, limit)
    if off:
        text = ", ".join(f"{name} is off by {error:.2g}" for name, error in off.items())
        raise UnequalOutputsError(
            f"{what}: {text} of the float64 reference; allowed: {limit:.2g}. There is no ratio: correct the call first."
        )

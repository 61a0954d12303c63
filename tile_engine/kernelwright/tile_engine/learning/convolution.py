"""Inputs of learned selection for convolution: the numbers of the schema's inputs as C computes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.dispatch import ConvProblem
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.problems.convolution import conv_families, layer_of

_COUNTS = {"images": "n", "channels_in": "c", "channels_out": "k", "groups": "g"}


class ConvolutionLearning:
    """See :class:`kernelwright.tile_engine.operation.Learnable`."""

    def __init__(self, problem_of: Callable[[Record], ConvProblem]) -> None:
        """``problem_of`` builds a record's problem."""
        self._problem_of = problem_of

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> dict[str, float] | None:
        """The values of ``kw_conv_problem`` and ``kw_conv_traits``; None for gradients of depthwise weights."""
        if record["direction"] == "backward_weight" and record["g"] > 1 and record["g"] == record["c"] == record["k"]:
            return None
        problem = self._problem_of(record)
        features = {name: float(record[column]) for name, column in _COUNTS.items()}
        for axis, out in zip("dhw", (1,) * (3 - len(problem.out_size)) + tuple(problem.out_size), strict=True):
            features |= {f"in_{axis}": float(record[f"{axis}i"]), f"out_{axis}": float(out)}
            features[f"stride_{axis}"] = float(record[f"stride_{axis}"])
        features |= {f"filter_{axis}": float(record[point]) for axis, point in zip("dhw", "zyx", strict=True)}
        features |= {f"tile_{axis}": float(spec["tile"][axis]) for axis in "mn"}
        return features | {
            "wave_m": float(spec["wave"]["m"]),
            "pitch": float(_fold_pitch(record)),
            "data": float(record["direction"] == "backward_data"),
            "weight": float(record["direction"] == "backward_weight"),
            "size": float(ELEMENT_BYTES[DType(record["dtype"])]),
            "depthwise": float(spec["depthwise"]),
            "slices": float(max(value, 1)),
        }

    def family(self, record: Record) -> str:
        """Family by layer; a problem of no known layer is its own family."""
        return _families().get(layer_of(record), "-".join(map(str, layer_of(record))))


def _fold_pitch(record: Record) -> int:
    """``kw_conv_fold_pitch``: channels per point of the folded image, 0 if it is not folded."""
    taps, pitch, data = record["x"], record["c"], record["direction"] == "backward_data"
    if record["g"] != 1 or taps < 2 or record["dilation_w"] != 1 or pitch > (8 if data else 16):
        return 0
    while not data and pitch * record["stride_w"] % 8:
        pitch += 1
    return pitch if 2 * -(-taps * pitch // 64) <= taps else 0


@functools.cache
def _families() -> Mapping[tuple[int, ...], str]:
    return conv_families()

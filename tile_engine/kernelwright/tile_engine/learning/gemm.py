"""Inputs of learned selection for GEMM: the numbers of the schema's inputs as C computes them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.problems.gemm import few_rows_problems, layer_problems, tall_problems
from kernelwright.tile_engine.problems.models import PARTS

_EXTENTS = ("m", "n", "k")
_ROWS, _INSTRUCTION_BYTES = 64, 32  # of wgmma, along K


class GemmLearning:
    """See :class:`kernelwright.tile_engine.operation.Learnable`."""

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> dict[str, float]:
        """The values of ``kw_gemm_problem`` and ``kw_gemm_traits``."""
        size_a, size_c = (float(ELEMENT_BYTES[DType(spec[name])]) for name in ("dtype_a", "dtype_c"))
        tile, warp = spec["tile"], spec["warp_tile"]
        features: dict[str, float] = {name: float(record[name]) for name in (*_EXTENTS, "batch")}
        features |= {f"tile_{axis}": float(tile[axis]) for axis in "mnk"}
        features |= {f"cluster_{axis}": float(spec.get("cluster", {}).get(axis, 1)) for axis in "mn"}
        plain = warp["m"] == _ROWS and warp["n"] == tile["n"]
        return features | {
            "size_a": size_a,
            "size_c": size_c,
            "warp_tile_m": float(warp["m"]),
            "swapped": float(not plain and warp["m"] == tile["m"] and warp["n"] == _ROWS),
            "pingpong": float(spec["wave"]["m"] == 1 and spec["wave"]["n"] == 1),
            "hopper": float(_ROWS in (warp["m"], warp["n"]) and warp["k"] * size_a == _INSTRUCTION_BYTES),
            "split_k": float(bool(spec.get("split_k"))),
            "stream_k": float(spec.get("stream_k", "none") != "none"),
            "slices": float(max(value, 1)),
        }

    def family(self, record: Record) -> str:
        """Family by extents; a problem of no known layer is its own family."""
        extents = tuple(int(record[name]) for name in _EXTENTS)
        return _families().get(extents, "x".join(map(str, extents)))


@functools.cache
def _families() -> dict[tuple[int, ...], str]:
    problems = itertools.chain(tall_problems(), *map(few_rows_problems, PARTS), *map(layer_problems, PARTS))
    return {(one.m, one.n, one.k): one.family for one in problems}

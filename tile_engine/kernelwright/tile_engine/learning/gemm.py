"""What learned selection reads of GEMM: the numbers that the schema's inputs are in C."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.problems.gemm import layer_problems, tall_problems
from kernelwright.tile_engine.problems.models import PARTS

_EXTENTS = ("m", "n", "k")


class GemmLearning:
    """See :class:`kernelwright.tile_engine.learning.learnable.Learnable`."""

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> dict[str, float]:
        """As ``kw_gemm_problem`` and ``kw_gemm_traits`` hold them."""
        sizes = [ELEMENT_BYTES[DType(spec[name])] for name in ("dtype_a", "dtype_b", "dtype_c")]
        found: dict[str, float] = {name: float(record[name]) for name in (*_EXTENTS, "batch")}
        found |= dict(zip(("size_a", "size_b", "size_c"), map(float, sizes), strict=True))
        for extent in ("tile", "wave", "warp_tile"):
            found |= {f"{extent}_{axis}": float(spec[extent][axis]) for axis in "mnk"}
        found |= {f"cluster_{axis}": float(spec.get("cluster", {}).get(axis, 1)) for axis in "mn"}
        found["persistent"] = float(bool(spec.get("persistent")))
        found["split_k"] = float(bool(spec.get("split_k")))
        found["stream_k"] = float(spec.get("stream_k", "none") != "none")
        return found

    def family(self, record: Record) -> str:
        """By extents; a problem of no known layer is a family of its own."""
        extents = tuple(int(record[name]) for name in _EXTENTS)
        return _families().get(extents, "x".join(map(str, extents)))


@functools.cache
def _families() -> dict[tuple[int, ...], str]:
    posed = itertools.chain(tall_problems(), *map(layer_problems, PARTS))
    return {(one.m, one.n, one.k): one.family for one in posed}

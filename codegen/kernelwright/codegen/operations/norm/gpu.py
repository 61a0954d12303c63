"""Template variables of a norm that all GPU backends share."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.norm.spec import OPS, Direction, Kind, NormSpec


def symbols(spec: NormSpec, fp8: str) -> Mapping[str, object]:
    """The variables; types of ``kernelwright::norm`` have the names of specs, ``fp8`` is the name for results."""
    quantised = {DType.INT8: "quantised_int8", DType.FP8: fp8}
    return {
        "op": OPS[spec.kind, spec.direction].c_name,
        "element": str(spec.dtype),
        "result": quantised.get(spec.dtype_y, str(spec.dtype_y)),
        "dtype_x": spec.dtype.c_name,
        "dtype_y": spec.dtype_y.c_name,
        "centred": spec.kind is Kind.LAYER,
        "backward": spec.direction is Direction.BACKWARD,
        "block": spec.rows_per_block * spec.threads_per_row,
    }

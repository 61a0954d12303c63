"""Attention through CK Tile: the C++ symbols of its kernels."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.constraints.tiles import stages
from kernelwright.codegen.operations.attention.kinds import Bias, Family, Mask, OperandTypes, Pipeline, QScale
from kernelwright.codegen.operations.attention.spec import Tile, attention_spec
from kernelwright.codegen.templates import Template, read_template
from kernelwright.codegen.violations import SpecError

# None: attention has no such operand.
DTYPES: Mapping[DType, str | None] = {
    DType.FP32: "float",
    DType.FP16: "ck_tile::fp16_t",
    DType.BF16: "ck_tile::bf16_t",
    DType.FP8: "ck_tile::fp8_t",
    DType.BF8: "ck_tile::bf8_t",
    DType.INT8: None,
    DType.INT32: None,
}
BIASES: Mapping[Bias, str] = {Bias.NONE: "no_bias", Bias.ELEMENTWISE: "elementwise", Bias.ALIBI: "alibi"}
PIPELINES = (Pipeline.QR, Pipeline.QR_ASYNC, Pipeline.QS, Pipeline.QR_ASYNC_TRLOAD)
"""The forward pipelines that have a template."""

TREES = ("hip_attention",)
_TEMPLATES: Mapping[Family, str] = {Family.FWD: "templates/ck_tile/fwd.hpp.jinja"}


def template(kernel: Kernel) -> Template:
    """The template of a kernel's header; SpecError for a family or pipeline that has none."""
    spec = attention_spec(kernel)
    if spec.family not in _TEMPLATES or spec.pipeline not in PIPELINES:
        asked = f"{spec.family} kernel with pipeline {spec.pipeline}"
        known = f"{', '.join(_TEMPLATES)} with pipeline {', '.join(PIPELINES)}"
        raise SpecError(f"CK Tile has no template of a {asked}; allowed: {known}")
    return read_template("kernelwright.codegen.operations.attention", _TEMPLATES[spec.family])


def context(kernel: Kernel) -> Mapping[str, object]:
    """Symbols of the templates below ``templates/ck_tile``."""
    spec = attention_spec(kernel)
    eight_bits = spec.dtype.inputs in (DType.FP8, DType.BF8)
    waves, warp_tiles = stages(spec.wave), stages(spec.warp_tile)
    return {
        "dtype_in": DTYPES[spec.dtype.inputs],
        "dtype_out": DTYPES[spec.dtype.output],
        "dtype_bias": "float" if eight_bits and spec.dtype is not OperandTypes.BF8 else DTYPES[spec.dtype.inputs],
        "tile": ", ".join(str(getattr(spec.tile, axis)) for axis in Tile.model_fields),
        "waves": [", ".join(map(str, stage)) for stage in waves],
        "warp_tiles": [", ".join(map(str, stage)) for stage in warp_tiles],
        "bias_kind": BIASES[spec.bias],
        "masked": spec.mask is not Mask.NONE,
        "scaled": spec.qscale is not QScale.NONE,
        "function": f"{kernel.symbol}_fwd",
    }

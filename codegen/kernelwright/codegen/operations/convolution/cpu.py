"""Convolution on CPUs: the C++ symbols of its kernels and which members have none.

The kernels stand in dispatcher_cpp/include/kernelwright/cpu/convolution.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import load
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.arch_section import conv_features
from kernelwright.codegen.operations.convolution.spec import ConvLayout, Direction, GroupedConvSpec, conv_spec

OPERATIONS: Mapping[tuple[DType, int], str] = {
    (DType.FP32, 1): "widened_fma<fp32>",
    (DType.FP16, 1): "widened_fma<fp16>",
    (DType.BF16, 1): "widened_fma<bf16>",
    (DType.BF16, 2): "bf16_dot",
}
"""By dtype and the values of K that one instruction sums (warp_tile.k)."""

ELEMENTS: Mapping[DType, str] = {DType.FP32: "fp32", DType.FP16: "fp16", DType.BF16: "bf16"}

OPS: Mapping[Direction, str] = {
    Direction.FORWARD: "KW_OP_CONV_FORWARD",
    Direction.BACKWARD_DATA: "KW_OP_CONV_BACKWARD_DATA",
    Direction.BACKWARD_WEIGHT: "KW_OP_CONV_WEIGHT_SLICES",
}

LAYOUTS: Mapping[ConvLayout, str] = {layout: f"KW_CONV_{layout.upper()}" for layout in ConvLayout}

ACTIVATIONS: Mapping[Activation, tuple[str, str]] = {
    Activation.NONE: ("no_activation", "KW_ACTIVATION_NONE"),
    Activation.RELU: ("relu", "KW_ACTIVATION_RELU"),
    Activation.GELU: ("gelu", "KW_ACTIVATION_GELU"),
    Activation.FAST_GELU: ("fast_gelu", "KW_ACTIVATION_FAST_GELU"),
    Activation.SILU: ("silu", "KW_ACTIVATION_SILU"),
    Activation.SIGMOID: ("sigmoid", "KW_ACTIVATION_SIGMOID"),
    Activation.TANH: ("tanh", "KW_ACTIVATION_TANH"),
}
"""The type that computes it, and the number of the C ABI."""

SOURCES = {"conv_launcher": "__cpu_convolution_launcher/include/kernelwright/cpu/launchers/convolution/launcher.cpp"}
"""Launcher sources that a library with convolution kernels contains beside the driver of all CPU kernels."""

TREES = ("cpu_convolution", "gemm", "cpu_gemm")
"""The inner loops share packing, epilogues and arithmetic with GEMM."""


def context(kernel: Kernel) -> Mapping[str, object]:
    """C++ symbols for ``templates/cpu/convolution.hpp.jinja``; the spec must have passed the rules."""
    spec = conv_spec(kernel)
    features = conv_features(spec.dtype, spec.warp_tile.k, load(kernel.arch))
    return {
        "op": OPS[spec.direction],
        "operation": OPERATIONS[spec.dtype, spec.warp_tile.k],
        "epilogue": _epilogue(spec),
        "layout": LAYOUTS[spec.layout],
        "activation": ACTIVATIONS[spec.activation][1],
        "required_features": " | ".join(map(_enumerator, features)) or "kNoFeature",
        "features": " ".join(features),
    }


def _enumerator(feature: str) -> str:
    """The name of kernelwright::cpu::feature for a feature of the architecture file: kAvx512Bf16 for avx512_bf16."""
    return "k" + "".join(part.capitalize() for part in feature.split("_"))


def _epilogue(spec: GroupedConvSpec) -> str:
    element = ELEMENTS[spec.dtype]
    if not spec.fused:
        return f"epilogue<{element}>"
    return f"epilogue<{element}, {spec.bias + spec.residual}, KW_D_ADD, {ACTIVATIONS[spec.activation][0]}>"

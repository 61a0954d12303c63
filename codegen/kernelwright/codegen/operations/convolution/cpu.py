"""Convolution on CPUs: the C++ symbols of its kernels, and the members without one.

The kernels are in dispatcher_cpp/include/kernelwright/cpu/convolution.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.arch_section import conv_features
from kernelwright.codegen.operations.convolution.spec import OPS, GroupedConvSpec, conv_spec
from kernelwright.codegen.symbols import CPU_ACTIVATIONS, CPU_DTYPES, part
from kernelwright.codegen.trees import launcher_files

OPERATIONS: Mapping[tuple[DType, int], str] = {
    (DType.FP32, 1): "widened_fma<fp32>",
    (DType.FP16, 1): "widened_fma<fp16>",
    (DType.BF16, 1): "widened_fma<bf16>",
    (DType.BF16, 2): "bf16_dot",
}
"""C++ operations by dtype and the values of K that one instruction sums (warp_tile.k)."""

ELEMENTS = part(CPU_DTYPES, DType.FP32, DType.FP16, DType.BF16)


SOURCES = launcher_files("cpu", "convolution", "launch")
"""Launcher sources that a library with convolution kernels contains, besides the driver of all CPU kernels."""

TREES = ("cpu_convolution", "gemm", "cpu_gemm")
"""Header trees: the inner loops share packing, epilogues and arithmetic with GEMM."""


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the C++ symbols for ``templates/cpu/convolution.hpp.jinja``; the spec must have passed the rules."""
    spec = conv_spec(kernel)
    any_epilogue = spec.activation is Activation.ANY
    features = conv_features(spec.dtype, spec.warp_tile.k, arch)
    return {
        "op": OPS[spec.direction].c_name,
        "operation": OPERATIONS[spec.dtype, spec.warp_tile.k],
        "epilogue": _epilogue(spec),
        "layout": spec.layout.c_name,
        "bias": int(spec.bias or any_epilogue),
        "residual": int(spec.residual or any_epilogue),
        "activation": spec.activation.c_name,
        "required_features": " | ".join(map(_enumerator, features)) or "kNoFeature",
        "features": " ".join(features),
    }


def _enumerator(feature: str) -> str:
    """Return the name of kernelwright::cpu::feature for an architecture file's feature: kAvx512Bf16 for avx512_bf16."""
    return "k" + "".join(part.capitalize() for part in feature.split("_"))


def _epilogue(spec: GroupedConvSpec) -> str:
    element = ELEMENTS[spec.dtype]
    if spec.activation is Activation.ANY:
        return f"any_epilogue<{element}>"
    if not spec.fused:
        return f"epilogue<{element}>"
    return f"epilogue<{element}, {spec.bias + spec.residual}, KW_D_ADD, {CPU_ACTIVATIONS[spec.activation]}>"

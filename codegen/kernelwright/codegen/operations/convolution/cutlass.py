"""Convolution on NVIDIA GPUs: the C++ symbols of its kernels. The rules refuse words without one.

The kernels are in dispatcher_cpp/include/kernelwright/cuda/convolution; matrix instructions and TMA come from CUTLASS.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.spec import OPS, ConvScheduler, Direction, conv_spec
from kernelwright.codegen.symbols import CUDA_ACTIVATIONS, CUTLASS_DTYPES, part
from kernelwright.codegen.trees import launcher_files

ELEMENTS = part(CUTLASS_DTYPES, DType.FP16, DType.BF16)

WARP_GROUPS: Mapping[ConvScheduler, int] = {ConvScheduler.COOPERATIVE: 2, ConvScheduler.PINGPONG: 1}
"""Warp groups that share a tile."""

ACTIVATIONS = {**CUDA_ACTIVATIONS, Activation.ANY: "any"}

DEPTHWISE: Mapping[Direction, str] = {
    Direction.FORWARD: "depthwise",
    Direction.BACKWARD_DATA: "depthwise_data",
    Direction.BACKWARD_WEIGHT: "depthwise_weight",
}
"""Templates of kernels without a GEMM."""

STEP = 64
"""Values that one step of a sum multiplies: 128 bytes, the widest line that TMA swizzles."""

MAX_SPLIT_K = 128
"""The most slices that backward weight sums."""

_NAMES = ("launch", "shape", "folding", "descriptors", "helpers", "depthwise", "start")
SOURCES = launcher_files("cutlass", "convolution", *_NAMES)
"""Launcher sources that a library with convolution kernels contains."""

TREES = ("cuda_src_convolution",)


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the C++ symbols for ``templates/cutlass/convolution.hpp.jinja``; the spec must have passed the rules."""
    spec = conv_spec(kernel)
    weight = spec.direction is Direction.BACKWARD_WEIGHT
    any_epilogue = spec.activation is Activation.ANY
    template = DEPTHWISE[spec.direction] if spec.depthwise else "implicit_gemm"
    return {
        "template": template,
        "header": {"implicit_gemm": "convolution", "depthwise_data": "depthwise"}.get(template, template),
        "op": OPS[spec.direction].c_name,
        "element": ELEMENTS[spec.dtype],
        "abi_dtype": spec.dtype.c_name,
        "abi_layout": spec.layout.c_name,
        "bias": spec.bias or any_epilogue,
        "residual": spec.residual or any_epilogue,
        "activation": ACTIVATIONS[spec.activation],
        "cooperative": spec.scheduler is ConvScheduler.COOPERATIVE,
        "data": spec.direction is Direction.BACKWARD_DATA,
        "weight": weight,
        "max_split_k": MAX_SPLIT_K if weight else 1,
    }

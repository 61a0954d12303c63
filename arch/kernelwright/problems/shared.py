"""Words that operations share: element types, activations, and how stream-K adds up."""

from __future__ import annotations

from kernelwright.problems.fields import Header, Word


class DType(Word, c_type="kw_dtype", prefix="KW_", first=1):
    """Types of elements. The encoding of fp8 and bf8 is the kw_fp8_format of the architecture."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8", "e4m3"
    BF8 = "bf8", "e5m2"
    INT8 = "int8"
    INT32 = "int32"


ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "bf8": 1, "int8": 1, "int32": 4}
"""Bytes of an element."""
RESULT = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "fp8": "fp16", "bf8": "fp16", "int8": "int32"}
"""Default type of a kernel's result: 8-bit operands produce a wider result."""


class MatrixOrder(Word, c_type="kw_layout", prefix="KW_"):
    """Storage order of one matrix."""

    ROW_MAJOR = "row-major"
    COL_MAJOR = "column-major"


class Activation(Word, c_type="kw_activation", prefix="KW_ACTIVATION_", of_traits=("any",)):
    """The last step of an epilogue."""

    NONE = "none"
    RELU = "relu"
    GELU = "gelu", "x/2 (1 + erf(x/sqrt(2)))"
    FAST_GELU = "fast_gelu", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"
    SILU = "silu", "x / (1 + exp(-x))"
    SIGMOID = "sigmoid", "1 / (1 + exp(-x))"
    TANH = "tanh"
    ANY = (
        "any",
        "of traits only: the kernel reads its epilogue from the problem. It serves every activation, any d_op, and up"
        " to num_d D tensors; of convolution, problems with or without each of bias and residual",
        "",
        255,
    )


class StreamK(Word, c_type="kw_stream_k", prefix="KW_STREAM_K_", named=False):
    """
    How stream-K adds up the parts of a tile, always in the same order: atomic sums would depend on which workgroup
    finishes first.
    """

    NONE = "none"
    LINEAR = "linear"
    TREE = "tree"


DTYPES_HEADER = Header(
    "kernelwright/dtypes.h", "Types of elements, and storage orders of matrices.", (), (DType, MatrixOrder)
)
EPILOGUE_HEADER = Header(
    "kernelwright/epilogue.h",
    "What the kernels of several operations do in the same way: activations, and how stream-K adds up.",
    (), (Activation, StreamK),
)  # fmt: skip
HEADERS = (DTYPES_HEADER, EPILOGUE_HEADER)

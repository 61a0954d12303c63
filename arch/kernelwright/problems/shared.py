"""What operations share: element types, activations, and how stream-K adds up."""

from __future__ import annotations

from kernelwright.problems.fields import Constant, Enum, Header, Value

_FLOAT8 = "in the kw_fp8_format of the architecture"
ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "bf8": 1, "int8": 1, "int32": 4}
"""Bytes of an element."""
DTYPE = Enum(
    "kw_dtype", "KW_",
    (
        Value("fp32"), Value("fp16"), Value("bf16"), Value("fp8", f"e4m3, {_FLOAT8}"), Value("bf8", f"e5m2, {_FLOAT8}"),
        Value("int8"), Value("int32"),
    ),
    first=1, item_bytes=ITEM_BYTES,
)  # fmt: skip
RESULT = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "fp8": "fp16", "bf8": "fp16", "int8": "int32"}
"""What a kernel writes when the caller does not say: 8-bit operands produce a wider result."""
LAYOUT = Enum("kw_layout", "KW_", (Value("row-major"), Value("column-major", c_name="COL_MAJOR")))
ACTIVATION = Enum(
    "kw_activation", "KW_ACTIVATION_",
    (
        Value("none"), Value("relu"),
        Value("gelu", "x/2 (1 + erf(x/sqrt(2)))"),
        Value("fast_gelu", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"),
        Value("silu", "x / (1 + exp(-x))"),
        Value("sigmoid", "1 / (1 + exp(-x))"),
        Value("tanh"),
    ),
)  # fmt: skip
ANY_ACTIVATION = Constant(
    "KW_ACTIVATION_ANY", 255,
    "Activation of traits alone: the kernel reads its epilogue from the problem. It serves every activation, any d_op,"
    " and up to num_d D tensors; of convolution, problems with or without each of bias and residual.",
)  # fmt: skip
STREAM_K = Enum(
    "kw_stream_k", "KW_STREAM_K_", (Value("none"), Value("linear"), Value("tree")),
    "How stream-K adds up the parts of a tile.", named=False,
)  # fmt: skip

DTYPES_HEADER = Header(
    "kernelwright/dtypes.h", "Types of elements, and storage orders of matrices.", (), (DTYPE, LAYOUT)
)
EPILOGUE_HEADER = Header(
    "kernelwright/epilogue.h",
    "What the kernels of several operations do in the same way: activations, and how stream-K adds up.",
    (), (ACTIVATION, ANY_ACTIVATION, STREAM_K),
)  # fmt: skip
HEADERS = (DTYPES_HEADER, EPILOGUE_HEADER)

"""RMS norm and layer norm in the C ABI: problems, operands of a launch, traits of kernels."""

from kernelwright.problems.fields import RECORDS, U32, Field, Header, Struct, Word, member, record
from kernelwright.problems.shared import DType


class NormOp(Word, c_type="kw_norm_op", prefix="KW_OP_", first=48):
    """Values of kw_problem.op: 48 to 63 are of this header. One struct describes the problems of all."""

    RMS_NORM = "rms norm", "y from x"
    LAYER_NORM = "layer norm", "y from x, less the mean of its row"
    RMS_NORM_BACKWARD = "rms norm backward", "dx, dweight from dy and x"
    LAYER_NORM_BACKWARD = "layer norm backward", "dx, dweight, dbias from dy and x"


LARGEST = {"int8": 127.0, "fp8": 448.0}
"""The value to which the largest result of a row is scaled, by the type of quantised results."""
LARGEST_FNUZ = 240.0
"""The same for fp8 on architectures whose 8-bit floats have the FNUZ format."""

_STRIDE = "elements from one row to the next, of"


@record("kw_norm_problem", op=NormOp)
class Problem:
    """
    Each row of x is divided by the root of the mean of its squares; layer norm first takes the row's mean off.
    Arithmetic is in fp32.

      forward:   s = x + residual, rounded to dtype_x and written to sum; without a residual s = x
                 h = (s - mean(s)) / sqrt(mean((s - mean(s))^2) + epsilon), of RMS norm with 0 for mean(s)
                 y = h * weight + bias

      quantised: scale = max |y| / 127 of int8, max |y| / 448 of fp8 (e4m3; 240 where its format is FNUZ), one for each
                 row; y / scale is rounded to nearest even. A row of zeros has scale 0. A row with a number that is not
                 finite has scale NaN.

      backward:  g = dy * weight, r = 1 / sqrt(mean(...) + epsilon) as above, of s
                 dx = r * (g - mean(g) - h * mean(g * h)) + dsum, of RMS norm without mean(g)
                 dweight = sum over rows of dy * h, dbias = sum over rows of dy

    The struct has no padding bytes, so it can be hashed as memory; what a problem does not use is 0.
    """

    op: NormOp
    dtype_x: DType = member("of x, residual and sum; of dx, dy and dsum too")
    dtype_y: DType = member("of y: dtype_x, or int8 or fp8, which is quantised row by row. Backward: dtype_x")
    dtype_w: DType = member("of weight and bias and their gradients; that of x where there are none")
    weight: bool
    bias: bool = member("has the norm these operands? a bias: layer norm only")
    residual: bool = member("forward: is a residual added to x, and the sum written? backward: is dsum added to dx?")
    rows: int = member(least=0)
    columns: int = member("of a row, side by side: what is normalised together", least=1)
    stride_x: int = member(f"{_STRIDE} x", least=0)
    stride_residual: int = member(f"{_STRIDE} residual or dsum; 0 without", least=0)
    stride_y: int = member(f"{_STRIDE} y or dx", least=0)
    stride_sum: int = member(f"{_STRIDE} sum; 0 without, and backward", least=0)
    stride_dy: int = member(f"{_STRIDE} dy; forward 0", least=0)
    epsilon: float = member("added to the mean of squares; finite, 0 or more")


PROBLEM = RECORDS[Problem]

ARGS = Struct(
    "kw_norm_args",
    (
        Field("struct_size", "uint32_t"),
        Field("reserved", "uint32_t", "0"),
        Field("x", "const void*", "backward: what was normalised, so the sum where a residual was added"),
        Field("weight", "const void*", "columns values; null if the problem has none"),
        Field("bias", "const void*", "forward only; columns values; null if the problem has none"),
        Field("residual", "const void*", "backward: dsum, the gradient of the sum; null if the problem has none"),
        Field("dy", "const void*", "backward only"),
        Field("y", "void*", "backward: dx"),
        Field("sum", "void*", "forward with a residual, else null; with equal strides, may be x or the residual"),
        Field("scales", "float*", "of a quantised y: one for each row; else null"),
        Field("dweight", "void*", "backward with a weight, else null"),
        Field("dbias", "void*", "backward with a bias, else null"),
    ),
    """
    Operands of one launch, on its device. What is written overlaps nothing else; but with equal types and strides y may
    be x, and dx may be x, dy or dsum.
    """,
)


@record("kw_norm_traits")
class Traits:
    """What selection may know about a kernel without parsing text."""

    struct_size: U32 = member(init=False)
    dtype_x: DType = member("the weights' type is this one or fp32")
    dtype_y: DType = member()
    unroll: U32 = member("vectors that an iteration handles; on GPUs those that a thread keeps in registers")
    rows: U32 = member("GPUs: rows of a workgroup; 1 on CPUs")
    threads: U32 = member("GPUs: threads of a row; 1 on CPUs")
    vector: U32 = member("GPUs: elements that a thread reads at once; 0 on CPUs")


TRAITS = RECORDS[Traits]

HEADER = Header(
    "kernelwright/norm.h",
    """
    RMS norm and layer norm, forward and backward: problems, arguments, and what a kernel's traits say.

    C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h.
    """,
    ("kernelwright/abi.h",),
    (NormOp, PROBLEM, ARGS, TRAITS),
)

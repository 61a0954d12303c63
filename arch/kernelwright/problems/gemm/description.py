"""GEMM and grouped GEMM in the C ABI: problems, operands of a launch, traits of kernels."""

from kernelwright.problems.fields import (
    RECORDS,
    U16,
    U32,
    U64,
    Constant,
    Field,
    Header,
    Struct,
    Verbatim,
    Wholes,
    Word,
    member,
    record,
)
from kernelwright.problems.shared import Activation, DType, MatrixOrder, StreamK


class GemmOp(Word, c_type="kw_gemm_op", prefix="KW_OP_", first=1):
    """Values of kw_problem.op: 1 to 15 are of this header."""

    GEMM = "gemm"
    GROUPED_GEMM = "grouped_gemm"


class DOp(Word, c_type="kw_d_op", prefix="KW_D_"):
    """How the D tensors are combined with the product."""

    ADD = "add"
    MULTIPLY = "multiply"


MAX_D = Constant("KW_MAX_D", 4, "Most D tensors of one problem.")

_SIZE = Field("struct_size", "uint32_t")
_RESERVED = Field("reserved", "uint32_t", "0")


@record("kw_gemm_problem", op=GemmOp)
class Problem:
    """
    D[m,n] = act((alpha * sum_k A[m,k] B[k,n] + beta * C[m,n]) op D0[m,n] op D1[m,n] ...).

    C, D and the tensors D0 to D3 share dtype_c and layout_c; C and D share ldc too, and may be the same memory. A
    leading dimension is the distance, in elements, between rows (row-major) or columns (column-major). batch such
    products of one shape lie stride_* elements apart. The struct has no padding bytes, so it can be hashed as memory;
    what a problem does not use is 0.
    """

    dtype_a: DType
    dtype_b: DType
    dtype_c: DType
    dtype_acc: DType = member()
    layout_a: MatrixOrder
    layout_b: MatrixOrder
    layout_c: MatrixOrder = member(in_json=False)
    split_k: U32 = member("slices of K that are summed; 1 = none; 0 = the dispatcher chooses, kernels never see it")
    m: int
    n: int
    k: int = member(least=0)
    lda: int
    ldb: int
    ldc: int = member()
    alpha: float
    beta: float = member()
    batch: int = member(least=1)
    stride_a: int
    stride_b: int
    stride_c: int = member("from one product to the next; 0 for A or B: shared by all")
    num_d: U32 = member("D tensors", least=0, most=MAX_D.value)
    d_op: DOp = member()
    activation: Activation = member()
    reserved: U32 = member("0", init=False)
    ld_multi_d: Wholes = member(
        "0: one line for all, e.g. a bias of n values where C is row-major", length=MAX_D, counted="num_d"
    )
    stride_multi_d: Wholes = member("0: shared by all of the batch", length=MAX_D, counted="num_d")
    b_format: U64 = member("0: B as layout_b says; else kw_gemm_traits.b_format of the kernel that shuffled it")


PROBLEM = RECORDS[Problem]
_TYPES, _LAYOUTS, _SIZES, _LEADING = (PROBLEM.members[name].field for name in ("dtype_a", "layout_a", "m", "lda"))

ARGS = Struct(
    "kw_gemm_args",
    (
        _SIZE,
        _RESERVED,
        Field("a", "const void*"),
        Field("b", "const void*"),
        Field("c", "const void*"),
        Field("d", "void*"),
        Field("multi_d", "const void*", "D0 to D3, as many as the problem has", MAX_D),
    ),
    "Operands of one launch of a kw_gemm_problem, on its device. c may be null when beta is 0.",
)

GROUP = Struct(
    "kw_gemm_group", (_SIZES, _LEADING), "One product of a grouped GEMM, in elements as in kw_gemm_problem."
)  # fmt: skip

GROUPED_PROBLEM = Struct(
    "kw_grouped_gemm_problem",
    (
        _TYPES,
        _LAYOUTS,
        _RESERVED,
        Field("group_count", "int64_t", least=0, in_json=False),
        Field("groups", "const kw_gemm_group*"),
        Field("alpha beta", "double"),
    ),
    """
    group_count products D = alpha * A B + beta * C of different shapes. groups lies in host memory and is read during
    the call only.
    """,
    op=GemmOp,
)

GROUPED_ARGS = Struct(
    "kw_grouped_gemm_args",
    (
        _SIZE,
        _RESERVED,
        Field("group_count", "int64_t"),
        Field("groups", "const kw_gemm_group*"),
        Field("a", "const void* const*"),
        Field("b", "const void* const*"),
        Field("c", "const void* const*"),
        Field("d", "void* const*"),
    ),
    """
    Operands of one launch of a kw_grouped_gemm_problem. groups are those of the problem; a, b, c and d are arrays in
    host memory of group_count device pointers each, read during the call only. c may be null when beta is 0.
    """,
)


@record("kw_gemm_traits")
class Traits:
    """What selection may know about a GEMM kernel without parsing text."""

    struct_size: U32 = member(init=False)
    dtype_a: DType
    dtype_b: DType
    dtype_c: DType
    dtype_acc: DType = member()
    layout_a: MatrixOrder
    layout_b: MatrixOrder
    layout_c: MatrixOrder = member()
    tile_m: U32 = member(init=False, joined=True)
    tile_n: U32 = member(init=False, joined=True)
    tile_k: U32 = member(init=False)
    wave_m: U32 = member(init=False, joined=True)
    wave_n: U32 = member(init=False, joined=True)
    wave_k: U32 = member(init=False)
    warp_tile_m: U32 = member(init=False, joined=True)
    warp_tile_n: U32 = member(init=False, joined=True)
    warp_tile_k: U32 = member(init=False)
    pad_m: bool = member(init=False, joined=True)
    pad_n: bool = member(init=False, joined=True)
    pad_k: bool = member(init=False)
    persistent: bool = member(init=False)
    max_split_k: U32 = member()
    num_d: U32 = member("exactly so many, this d_op and activation are served, but see KW_ACTIVATION_ANY")
    d_op: DOp = member()
    activation: Activation = member()
    batched: bool = member("serves batch > 1")
    stream_k: StreamK = member(init=False)
    cluster_m: U16 = member(init=False, joined=True)
    cluster_n: U16 = member("tiles whose workgroups share operands; 0 = 1", init=False)
    b_format: U64 = member("how kw_gemm_extension.shuffle_b orders B; 0 = it does not")


TRAITS = RECORDS[Traits]

_EXTENSION = """\
/* kw_kernel.extension of GEMM kernels whose traits have a b_format; null for the others. */
typedef struct kw_gemm_extension {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  /* Bytes that B of the problem takes shuffled, and shuffling it: both in host memory, b as layout_b and ldb say. The m
   * of the problem does not matter. */
  kw_status (*shuffle_b_bytes)(const kw_kernel*, const kw_problem*, uint64_t* bytes);
  kw_status (*shuffle_b)(const kw_kernel*, const kw_problem*, const void* b, void* shuffled);
} kw_gemm_extension;
"""

HEADER = Header(
    "kernelwright/gemm.h",
    """
    GEMM and grouped GEMM: problems, arguments, and what a kernel's traits say.

    C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h.
    """,
    ("kernelwright/abi.h", "kernelwright/epilogue.h"),
    (GemmOp, MAX_D, DOp, PROBLEM, ARGS, GROUP, GROUPED_PROBLEM, GROUPED_ARGS, TRAITS, Verbatim(_EXTENSION)),
)

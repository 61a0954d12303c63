"""Attention in the C ABI: problems of all directions and of caches, operands of a launch, traits of kernels."""

from kernelwright.problems.attention.words import (
    AttentionOp,
    Bias,
    Family,
    Mask,
    PageLayout,
    PageTable,
    QScale,
    Rope,
)
from kernelwright.problems.fields import (
    INT64_MAX,
    RECORDS,
    U32,
    Constant,
    Field,
    Header,
    Struct,
    Verbatim,
    member,
    record,
)
from kernelwright.problems.shared import DType

VERSION = Constant("KW_ATTENTION_VERSION", 1, "Of the structs below: member `version` of problems.", suffix="u")
MOST = INT64_MAX // 64
"""The largest count or stride: byte offsets and sums of a few of them fit into 64 bits."""


@record("kw_attention_strides")
class Strides:
    """
    Memory strides in elements, from one request, head and row to the next. The head dimension is contiguous. Strides of
    tensors that are only read may be 0.

      batch mode   row r of head h of request b is at b * request + h * head + r * row
      group mode   `request` is 0, and r counts the rows of all requests: those of request b are from cu_seqlens[b] on
      pages        of K and V: `request` leads from one page to the next, and r counts the rows of the page
    """

    request: int = 0
    head: int = 0
    row: int = member(default=0)


STRIDES = RECORDS[Strides]


@record("kw_attention_problem", op=AttentionOp)
class Problem:
    """
    Forward, backward and their stages. The struct has no padding bytes, so it can be hashed as memory; what a problem
    does not use is 0 (but window widths, which are -1).

    Tensors: Q and O have heads_q heads of hdim_q and hdim_v elements, K and V heads_kv heads of hdim_q and hdim_v; head
    h of Q looks at head h / (heads_q / heads_kv) of K and V. Bias is a row of keys for each head and query, broadcast
    by strides of 0. LSE and D are fp32, of which "per row" below means batch x heads_q x max_seqlen_q in batch mode,
    and heads_q x total_q in group mode, dense.
    """

    op: AttentionOp
    version: U32 = member("KW_ATTENTION_VERSION", in_json=False, init=False)
    group: bool = member("1 = group mode: requests have lengths of their own")
    dtype_q: DType
    dtype_kv: DType
    dtype_o: DType = member("dQ is of dtype_q, dK and dV of dtype_kv, dO of dtype_o")
    dtype_bias: DType | None = member("of an elementwise bias, and of dbias; else 0. Slopes are fp32", in_json=False)
    mask: Mask = member("not generic")
    bias: Bias = member()
    lse: bool = member("1 = LSE is written. Backward always reads it: 0 there")
    sink: bool = member("1 = each row's sum of exponentials has exp(sinks[head]) too")
    dropout: bool = member("1 = see dropout_p")
    random_bytes: bool = member("1 = the random bytes of dropout are stored")
    kv_lengths: bool = member("1 = args.seqlens_k says how many keys of each request count")
    qscale: QScale = member()
    page_table: PageTable = member("backward: none")
    page_layout: PageLayout = member()
    dbias: bool = member("backward: 1 = dbias is written")
    deterministic: bool = member("backward: 1 = sums have a fixed order")
    num_splits: U32 = member("forward: parts of the keys; 1 = none; 0 = the dispatcher chooses. Else 1")
    leaves_splits: bool = member("KW_OP_ATTENTION_PART: 1 = writes o_splits and lse_splits, else 0", in_json=False)
    dq_slices: U32 = member(
        "KW_OP_ATTENTION_DQ_DK_DV and _CONVERT_DQ: fp32 sums that dQ is left as, to be added up in order; 0 = dQ is"
        " written. Else 0",
        in_json=False,
    )
    reserved: U32 = member("0", init=False)
    batch: int = member("requests", least=0, most=MOST)
    heads_q: int
    heads_kv: int = member("the first is a multiple of the second", least=1, most=MOST)
    hdim_q: int
    hdim_v: int = member("of Q and K; of V and O", least=1, most=MOST)
    max_seqlen_q: int
    max_seqlen_k: int = member("batch mode: of every request; group mode and pages: of the longest", least=0, most=MOST)
    total_q: int
    total_k: int = member("group mode: rows of Q, and of K where it has no pages; else 0", least=0, most=MOST)
    window_left: int
    window_right: int = member(least=-1, most=MOST)
    min_seqlen_q: int = member(
        "group mode: requests with fewer queries are skipped: O stays; 0 = none", least=0, most=MOST
    )
    pages: int
    page_size: int = member("in the cache; keys of a page")
    page_table_stride: int = member("KW_PAGES_BLOCK: entries from one request to the next", in_json=False)
    slopes_stride: int = member(
        "ALiBi: from one request to the next; 0 = all have the same heads_q slopes",
        least=0, most=MOST, in_json=False,
    )  # fmt: skip
    scale_block_q: int = member(
        "KW_QSCALE_BLOCK_SCALE: rows of a block of Q", least=0, most=MOST, in_json=False, init=False
    )
    scale_block_k: int = member("and of K and V", least=0, most=MOST, in_json=False, init=False)
    scale: float = member("of Q K^T")
    soft_cap: float = member("score = cap * tanh(score / cap); 0 = none")
    dropout_p: float = member("probability to be dropped; see kw_attention_keeps in attention/dropout.h", init=False)
    q: Strides
    k: Strides
    v: Strides
    o: Strides = member()
    bias_strides: Strides = member("group mode: query rows count as rows of Q do", in_json=False)
    d_o: Strides
    dq: Strides
    dk: Strides
    dv: Strides
    dbias_strides: Strides = member("backward; dbias: batch x heads_q x rows x keys", in_json=False)


PROBLEM = RECORDS[Problem]

ARGS = Struct(
    "kw_attention_args",
    (
        Field("struct_size", "uint32_t"),
        Field("reserved", "uint32_t", "0"),
        Field("q", "const void*"),
        Field("k", "const void*", "or the cache of K"),
        Field("v", "const void*", "or the cache of V"),
        Field("o", "void*", "read by backward"),
        Field("bias", "const void*", "elementwise bias, or slopes: fp32, [batch x] heads_q"),
        Field("sinks", "const float*", "heads_q scores, after scaling"),
        Field("lse", "float*", "per row; natural logarithm; read by backward"),
        Field("random_bytes", "void*", "uint8; per row x max_seqlen_k"),
        Field(
            "cu_seqlens_q", "const int32_t*", "group mode: batch + 1 first rows, ascending from 0; the last is total_q"
        ),
        Field("cu_seqlens_k", "const int32_t*", "the same of K and V; null with pages"),
        Field("seqlens_k", "const int32_t*", "kv_lengths: batch numbers of keys, at most what K holds for the request"),
        Field("page_table", "const int32_t*", "see kw_attention_page_table"),
        Field("page_indptr", "const int32_t*", "KW_PAGES_LIST: batch + 1 first entries, ascending from 0"),
        Field("last_page_lengths", "const int32_t*", "KW_PAGES_LIST: batch numbers from 1 to page_size"),
        Field("descale_q", "const float*", "see kw_attention_qscale"),
        Field("descale_k", "const float*"),
        Field("descale_v", "const float*"),
        Field("scale_o", "const float*", "one number: stored O = O * scale_o; where dtype_o is fp8 or bf8"),
        Field("seed offset", "uint64_t", "of dropout"),
        Field("o_splits", "float*"),
        Field("lse_splits", "float*"),
        Field("d_o", "const void*"),
        Field("d", "float*"),
        Field("dq", "void*"),
        Field("dk", "void*"),
        Field("dv", "void*"),
        Field("dbias", "void*"),
        Field("dq_sums", "float*"),
    ),
    """
    Operands of one launch, on its device; null where a problem has none. Written operands overlap nothing else. int32
    arrays of lengths hold numbers of rows.

                   reads                                     writes
      forward      q k v, bias, sinks, lengths, pages        o, lse, random_bytes
      part         the same                                  o, lse, random_bytes; or o_splits, lse_splits
      combine      o_splits lse_splits, lengths              o, lse
      backward     q k v o d_o lse, bias, lengths            dq dk dv dbias
      dot          o d_o, lengths                            d
      dq_dk_dv     q k v d_o lse d, bias, lengths            dk dv dbias; dq, or dq_sums (which it clears first)
      convert_dq   dq_sums, lengths                          dq

    Results of stages, fp32 and dense, "per row" as in kw_attention_problem:
      o_splits     num_splits x per row x hdim_v; need not be written where lse_splits is -inf
      lse_splits   num_splits x per row; -inf where the split sees nothing. The sink belongs to the first split
      d            per row: (1 - dropout_p) * sum over the row of dO * O
      dq_sums      dq_slices x per row x hdim_q; the sum over slices is dQ
    A split is any contiguous part of a request's keys, split s before split s + 1. Lengths are read on the device: a
    kernel that schedules by them does so in its launch, so that a captured graph may be replayed with other lengths.
    """,
)


@record("kw_append_problem", op=AttentionOp)
class Append:
    """
    New rows of K and V behind those that a cache holds: row j of request b stands at place seqlens_k[b] + j. With a
    rotary embedding K is turned by its place, and Q too where rotates_q is 1: row i of Q also stands at seqlens_k[b] +
    i. Batch mode: all requests append the same number of rows. No padding bytes; what is not used is 0.
    """

    version: U32 = member("KW_ATTENTION_VERSION", in_json=False, init=False)
    dtype: DType = member("of q, k, v and the cache")
    dtype_rotary: DType | None = member("of cos and sin; 0 without rotary embedding", in_json=False)
    rope: Rope = member()
    rotates_q: bool = member()
    page_table: PageTable = member("none or KW_PAGES_BLOCK", most=1)
    page_layout: PageLayout = member()
    reserved: U32 = member("0", init=False)
    batch: int = member(least=0, most=MOST)
    heads_q: int = member("0 unless rotates_q is 1", least=0, most=MOST)
    heads_kv: int
    hdim_q: int
    hdim_v: int = member(least=1, most=MOST)
    seqlen_q: int
    seqlen_new: int = member("rows of q (0 unless rotates_q) and of k and v for each request", least=0, most=MOST)
    capacity: int = member("rows that the cache can hold for a request", least=0, most=MOST)
    pages: int
    page_size: int = member()
    page_table_stride: int = member(in_json=False)
    rotary_dim: int = member("even, at most hdim_q", least=0, most=MOST)
    rotary_places: int = member("rows of cos and sin", least=0, most=MOST)
    q: Strides
    q_out: Strides
    k: Strides
    v: Strides = member(in_json=False)
    k_cache: Strides
    v_cache: Strides = member()


APPEND_PROBLEM = RECORDS[Append]

APPEND_ARGS = Struct(
    "kw_append_args",
    (
        Field("struct_size", "uint32_t"),
        Field("reserved", "uint32_t", "0"),
        Field("q", "const void*"),
        Field("q_out", "void*", "may be q"),
        Field("k", "const void*"),
        Field("v", "const void*"),
        Field("k_cache", "void*"),
        Field("v_cache", "void*"),
        Field("seqlens_k", "const int32_t*", "batch numbers of rows that the cache holds before"),
        Field("page_table", "const int32_t*", "see KW_PAGES_BLOCK"),
        Field("cos", "const void*", "rotary_places x rotary_dim / 2, dense"),
        Field("sin", "const void*"),
    ),
)

_Flags = frozenset[bool]
_NONE: _Flags = frozenset()


@record("kw_attention_traits")
class Traits:
    """
    What selection may know about an attention kernel without parsing text. Sets are made with KW_SERVES. Members that a
    family does not read are 0.
    """

    struct_size: U32 = member(init=False)
    family: Family = member()
    dtype_q: DType
    dtype_kv: DType
    dtype_o: DType = member("append: all the same. combine: dtype_o. dot: dtype_o. convert_dq: dtype_q")
    dtype_bias: DType | None = member("of an elementwise bias, or of cos and sin; 0 = none served", default=None)
    hdim_q: U32 = 0
    hdim_v: U32 = member("with padding the most, else exactly; 0 = any, or not read", default=0)
    vector_q: U32 = 0
    vector_v: U32 = member("head dimensions are multiples of them, also with padding; 0 counts as 1", default=0)
    pad_s: bool = False
    pad_sk: bool = False
    pad_d: bool = False
    pad_dv: bool = member("0: lengths are multiples of tile_m0 and tile_n0, head dimensions exact", default=False)
    tile_m0: U32 = 0
    tile_n0: U32 = 0
    tile_k0: U32 = 0
    tile_n1: U32 = 0
    tile_k1: U32 = member("queries, keys, ... of a tile; 0 = none", default=0)
    groups: _Flags = member("set of `group`", default=_NONE)
    masks: frozenset[Mask] = member("set of kw_attention_mask", default=frozenset())
    biases: frozenset[Bias] = member("set of kw_attention_bias", default=frozenset())
    lses: _Flags = _NONE
    sinks: _Flags = _NONE
    dropouts: _Flags = _NONE
    random_bytes: _Flags = _NONE
    soft_caps: _Flags = _NONE
    kv_lengths: _Flags = member("sets of 0 and 1; kv_lengths is 1 with a block table", default=_NONE)
    dbiases: _Flags = _NONE
    deterministics: _Flags = member("sets of 0 and 1", default=_NONE)
    min_seqlens_q: _Flags = member("set of 0 and 1: does it skip short requests?", default=_NONE)
    qscales: frozenset[QScale] = member("set of kw_attention_qscale", default=frozenset())
    page_tables: frozenset[PageTable] = member("set of kw_attention_page_table", default=frozenset())
    page_layouts: frozenset[PageLayout] = member("set of kw_attention_page_layout", default=frozenset())
    page_size: U32 = member("the one that is served; 0 = any", default=0)
    ropes: frozenset[Rope] = member("set of kw_attention_rope", default=frozenset())
    max_splits: U32 = member("parts of the keys: part 1 or more, combine the most that it adds up", default=0)
    leaves_splits: _Flags = member(
        "set of leaves_splits where num_splits is 1; more splits are left to combine if bit 1 is set, else combined in"
        " the same launch",
        default=_NONE,
    )
    leaves_dq: U32 = member("0 = writes dQ; 1 = leaves one sum; 2 = a slice for each tile_n0 keys", default=0)
    max_seqlen_q: U32 = member("most queries of a request; 0 = any", default=0)
    max_group: U32 = member("most heads of Q for one of K and V; 0 = any", default=0)
    threads: U32 = member("of a workgroup; 0 on CPU", default=0)
    blocks_per_cu: U32 = member("workgroups that a compute unit holds; 0 = not known", default=0)
    few_blocks: U32 = member(
        "1 = kept for problems whose larger tiles would leave compute units idle", default=0, least=0, most=1
    )
    selection_rank: U32 = member("among kernels of equal estimates, lower ones first", default=0)
    packs_heads: U32 = member(
        "1 = a tile's rows are the queries of all heads that share one of K and V", default=0, least=0, most=1
    )
    work_percent: U32 = member(
        "gradients: time of their products, in percent of one pass over the scores at the architecture's rate; 0 counts"
        " as 100",
        default=0,
    )


TRAITS = RECORDS[Traits]

_OP_OF = """\
/* kw_kernel.op of a family: the first four serve KW_OP_ATTENTION_PART, so that selection compares them with each other.
 */
#define KW_ATTENTION_OP_OF(family) \\
  ((family) <= KW_ATTENTION_BATCH_PREFILL ? (uint32_t)KW_OP_ATTENTION_PART : 30u + (uint32_t)(family))
"""

_SERVES = """\
/* A set of the values that a kernel serves: bit v stands for value v, also of members that are 0 or 1. */
#define KW_SERVES(value) (1u << (value))
#define KW_SERVES_BOTH 3u
"""

HEADER = Header(
    "kernelwright/attention.h",
    """
    Fused attention: problems, arguments, and what a kernel's traits say.

    C99. Sizes are int64 and count elements unless a name says bytes; structs as in kernelwright/abi.h. "Queries" are
    rows of Q, "keys" rows of K and V. A request is one sequence of queries with the keys that they look at.

      forward    O = softmax(bias + cap(scale * Q K^T), masked) V, LSE = log of each row's sum of exponentials
      backward   dQ, dK, dV and dbias from dO, O and LSE
      append     new K and V, and Q, with rotary embedding, into a cache
    """,
    ("kernelwright/abi.h",),
    (
        VERSION, AttentionOp, Family, Verbatim(_OP_OF), Mask, Bias, QScale, PageTable, PageLayout, Rope, STRIDES,
        PROBLEM, ARGS, APPEND_PROBLEM, APPEND_ARGS, Verbatim(_SERVES), TRAITS,
    ),
)  # fmt: skip

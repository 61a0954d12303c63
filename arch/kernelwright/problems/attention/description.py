"""Attention in the C ABI: problems of all directions and of caches, operands of a launch, traits of kernels."""

from __future__ import annotations

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
from kernelwright.problems.fields import INT64_MAX, Constant, Field, Header, Struct, Verbatim
from kernelwright.problems.shared import DType

VERSION = Constant("KW_ATTENTION_VERSION", 1, "Of the structs below: member `version` of problems.", suffix="u")
_MOST = INT64_MAX // 64  # so that byte offsets and sums of a few counts fit into 64 bits

STRIDES = Struct(
    "kw_attention_strides",
    (Field("request head row", "int64_t"),),
    """
    Memory strides in elements, from one request, head and row to the next. The head dimension is contiguous. Strides of
    tensors that are only read may be 0.

      batch mode   row r of head h of request b is at b * request + h * head + r * row
      group mode   `request` is 0, and r counts the rows of all requests: those of request b are from cu_seqlens[b] on
      pages        of K and V: `request` leads from one page to the next, and r counts the rows of the page
    """,
)

PROBLEM = Struct(
    "kw_attention_problem",
    (
        Field("version", "uint32_t", "KW_ATTENTION_VERSION", in_json=False),
        Field("group", "uint32_t", "1 = group mode: requests have lengths of their own", least=0, most=1),
        Field("dtype_q dtype_kv dtype_o", DType, "dQ is of dtype_q, dK and dV of dtype_kv, dO of dtype_o"),
        Field("dtype_bias", "uint32_t", "of an elementwise bias, and of dbias; else 0. Slopes are fp32", in_json=False),
        Field("mask", Mask, "not generic"),
        Field("bias", Bias),
        Field("lse", "uint32_t", "1 = LSE is written. Backward always reads it: 0 there", least=0, most=1),
        Field("sink", "uint32_t", "1 = each row's sum of exponentials has exp(sinks[head]) too", least=0, most=1),
        Field("dropout", "uint32_t", "1 = see dropout_p", least=0, most=1),
        Field("random_bytes", "uint32_t", "1 = the random bytes of dropout are stored", least=0, most=1),
        Field("kv_lengths", "uint32_t", "1 = args.seqlens_k says how many keys of each request count", least=0, most=1),
        Field("qscale", QScale),
        Field("page_table", PageTable, "backward: none"),
        Field("page_layout", PageLayout),
        Field("dbias", "uint32_t", "backward: 1 = dbias is written", least=0, most=1),
        Field("deterministic", "uint32_t", "backward: 1 = sums have a fixed order", least=0, most=1),
        Field("num_splits", "uint32_t", "forward: parts of the keys; 1 = none; 0 = the dispatcher chooses. Else 1"),
        Field(
            "leaves_splits",
            "uint32_t",
            "KW_OP_ATTENTION_PART: 1 = writes o_splits and lse_splits, else 0",
            in_json=False,
        ),
        Field(
            "dq_slices",
            "uint32_t",
            "KW_OP_ATTENTION_DQ_DK_DV and _CONVERT_DQ: fp32 sums that dQ is left as, to be added up in"
            " order; 0 = dQ is written. Else 0",
            in_json=False,
        ),
        Field("reserved", "uint32_t", "0"),
        Field("batch", "int64_t", "requests", least=0, most=_MOST),
        Field("heads_q heads_kv", "int64_t", "the first is a multiple of the second", least=1, most=_MOST),
        Field("hdim_q hdim_v", "int64_t", "of Q and K; of V and O", least=1, most=_MOST),
        Field(
            "max_seqlen_q max_seqlen_k",
            "int64_t",
            "batch mode: of every request; group mode and pages: of the longest",
            least=0,
            most=_MOST,
        ),
        Field(
            "total_q total_k",
            "int64_t",
            "group mode: rows of Q, and of K where it has no pages; else 0",
            least=0,
            most=_MOST,
        ),
        Field("window_left window_right", "int64_t", least=-1, most=_MOST),
        Field(
            "min_seqlen_q",
            "int64_t",
            "group mode: requests with fewer queries are skipped: O stays; 0 = none",
            least=0,
            most=_MOST,
        ),
        Field("pages page_size", "int64_t", "in the cache; keys of a page"),
        Field("page_table_stride", "int64_t", "KW_PAGES_BLOCK: entries from one request to the next", in_json=False),
        Field(
            "slopes_stride",
            "int64_t",
            "ALiBi: from one request to the next; 0 = all have the same heads_q slopes",
            least=0,
            most=_MOST,
            in_json=False,
        ),
        Field(
            "scale_block_q scale_block_k",
            "int64_t",
            "rows of a block: KW_QSCALE_BLOCK_SCALE",
            least=0,
            most=_MOST,
            in_json=False,
        ),
        Field("scale", "double", "of Q K^T"),
        Field("soft_cap", "double", "score = cap * tanh(score / cap); 0 = none"),
        Field("dropout_p", "double", "probability to be dropped; see kw_attention_keeps in attention/dropout.h"),
        Field("q k v o", STRIDES),
        Field("bias_strides", STRIDES, "group mode: query rows count as rows of Q do", in_json=False),
        Field("d_o dq dk dv dbias_strides", STRIDES, "backward; dbias: batch x heads_q x rows x keys", in_json=False),
    ),
    """
    Forward, backward and their stages. The struct has no padding bytes, so it can be hashed as memory; what a problem
    does not use is 0 (but window widths, which are -1).

    Tensors: Q and O have heads_q heads of hdim_q and hdim_v elements, K and V heads_kv heads of hdim_q and hdim_v; head
    h of Q looks at head h / (heads_q / heads_kv) of K and V. Bias is a row of keys for each head and query, broadcast
    by strides of 0. LSE and D are fp32, of which "per row" below means batch x heads_q x max_seqlen_q in batch mode,
    and heads_q x total_q in group mode, dense.
    """,
    op=AttentionOp,
)

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

APPEND_PROBLEM = Struct(
    "kw_append_problem",
    (
        Field("version", "uint32_t", "KW_ATTENTION_VERSION", in_json=False),
        Field("dtype", DType, "of q, k, v and the cache"),
        Field("dtype_rotary", "uint32_t", "of cos and sin; 0 without rotary embedding", in_json=False),
        Field("rope", Rope),
        Field("rotates_q", "uint32_t", least=0, most=1),
        Field("page_table", PageTable, "none or KW_PAGES_BLOCK", most=1),
        Field("page_layout", PageLayout),
        Field("reserved", "uint32_t", "0"),
        Field("batch", "int64_t", least=0, most=_MOST),
        Field("heads_q", "int64_t", "0 unless rotates_q is 1", least=0, most=_MOST),
        Field("heads_kv hdim_q hdim_v", "int64_t", least=1, most=_MOST),
        Field(
            "seqlen_q seqlen_new",
            "int64_t",
            "rows of q (0 unless rotates_q) and of k and v for each request",
            least=0,
            most=_MOST,
        ),
        Field("capacity", "int64_t", "rows that the cache can hold for a request", least=0, most=_MOST),
        Field("pages page_size", "int64_t"),
        Field("page_table_stride", "int64_t", in_json=False),
        Field("rotary_dim", "int64_t", "even, at most hdim_q", least=0, most=_MOST),
        Field("rotary_places", "int64_t", "rows of cos and sin", least=0, most=_MOST),
        Field("q q_out k v", STRIDES, in_json=False),
        Field("k_cache v_cache", STRIDES),
    ),
    """
    New rows of K and V behind those that a cache holds: row j of request b stands at place seqlens_k[b] + j. With a
    rotary embedding K is turned by its place, and Q too where rotates_q is 1: row i of Q also stands at seqlens_k[b] +
    i. Batch mode: all requests append the same number of rows. No padding bytes; what is not used is 0.
    """,
    op=AttentionOp,
)

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

TRAITS = Struct(
    "kw_attention_traits",
    (
        Field("struct_size", "uint32_t"),
        Field("family", Family),
        Field(
            "dtype_q dtype_kv dtype_o",
            "uint32_t",
            "append: all the same. combine: dtype_o. dot: dtype_o. convert_dq: dtype_q",
        ),
        Field("dtype_bias", "uint32_t", "of an elementwise bias, or of cos and sin; 0 = none served"),
        Field("hdim_q hdim_v", "uint32_t", "with padding the most, else exactly; 0 = any, or not read"),
        Field(
            "vector_q vector_v", "uint32_t", "head dimensions are multiples of them, also with padding; 0 counts as 1"
        ),
        Field(
            "pad_s pad_sk pad_d pad_dv",
            "uint32_t",
            "0: lengths are multiples of tile_m0 and tile_n0, head dimensions exact",
        ),
        Field("tile_m0 tile_n0 tile_k0 tile_n1 tile_k1", "uint32_t", "queries, keys, ... of a tile; 0 = none"),
        Field("groups", "uint32_t", "set of `group`"),
        Field("masks", "uint32_t", "set of kw_attention_mask"),
        Field("biases", "uint32_t", "set of kw_attention_bias"),
        Field(
            "lses sinks dropouts random_bytes soft_caps kv_lengths",
            "uint32_t",
            "sets of 0 and 1; kv_lengths is 1 with a block table",
        ),
        Field("dbiases deterministics", "uint32_t", "sets of 0 and 1"),
        Field("min_seqlens_q", "uint32_t", "set of 0 and 1: does it skip short requests?"),
        Field("qscales", "uint32_t", "set of kw_attention_qscale"),
        Field("page_tables page_layouts", "uint32_t", "sets of kw_attention_page_table and kw_attention_page_layout"),
        Field("page_size", "uint32_t", "the one that is served; 0 = any"),
        Field("ropes", "uint32_t", "set of kw_attention_rope"),
        Field("max_splits", "uint32_t", "parts of the keys: part 1 or more, combine the most that it adds up"),
        Field(
            "leaves_splits",
            "uint32_t",
            "set of leaves_splits where num_splits is 1; more splits are left to combine if bit"
            " 1 is set, else combined in the same launch",
        ),
        Field("leaves_dq", "uint32_t", "0 = writes dQ; 1 = leaves one sum; 2 = a slice for each tile_n0 keys"),
        Field("max_seqlen_q", "uint32_t", "most queries of a request; 0 = any"),
        Field("max_group", "uint32_t", "most heads of Q for one of K and V; 0 = any"),
        Field("threads", "uint32_t", "of a workgroup; 0 on CPU"),
        Field("blocks_per_cu", "uint32_t", "workgroups that a compute unit holds; 0 = not known"),
        Field(
            "few_blocks",
            "uint32_t",
            "1 = kept for problems whose larger tiles would leave compute units idle",
            least=0,
            most=1,
        ),
        Field("selection_rank", "uint32_t", "among kernels of equal estimates, lower ones first"),
        Field(
            "packs_heads",
            "uint32_t",
            "1 = a tile's rows are the queries of all heads that share one of K and V",
            least=0,
            most=1,
        ),
        Field(
            "work_percent",
            "uint32_t",
            "gradients: time of their products, in percent of one pass over the scores at the"
            " architecture's rate; 0 counts as 100",
        ),
    ),
    """
    What selection may know about an attention kernel without parsing text. Sets are made with KW_SERVES. Members that a
    family does not read are 0.
    """,
)


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

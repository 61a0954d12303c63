"""The numbers of attention in the C ABI and the words for them: operations, families of kernels, features."""

from __future__ import annotations

from kernelwright.problems.fields import Enum, Value

OP = Enum(
    "kw_attention_op",
    "KW_OP_",
    (
        Value("attention", "O and LSE: a part, and a combination where it leaves splits"),
        Value("attention backward", "dot, then gradients, then a conversion where dQ is left as sums"),
        Value("attention part", "O and LSE, or splits of them where leaves_splits is 1"),
        Value("attention combine", "O and LSE from splits"),
        Value("attention append", "kw_append_problem"),
        Value("attention dot", "D from O and dO"),
        Value("attention dq_dk_dv", "dK, dV and dbias; dQ, or sums of it where dq_slices is not 0"),
        Value("attention convert_dq", "dQ from its sums"),
    ),
    """
    Values of kw_problem.op: 32 to 47 are of this header. Callers pose the first two and KW_OP_ATTENTION_APPEND; the
    dispatcher makes the others out of them, and kernels serve KW_OP_ATTENTION_PART to KW_OP_ATTENTION_CONVERT_DQ. All
    but append are described by kw_attention_problem.
    """,
    first=32,
)

FAMILY = Enum(
    "kw_attention_family",
    "KW_ATTENTION_",
    (
        Value("fwd"),
        Value("fwd_splitkv"),
        Value("fwd_pagedkv"),
        Value("batch_prefill"),
        Value("fwd_splitkv_combine"),
        Value("fwd_appendkv"),
        Value("bwd_dot_do_o"),
        Value("bwd_dq_dk_dv"),
        Value("bwd_convert_dq"),
    ),
    "What a kernel computes: `family` of its spec.",
    first=1,
)

MASK = Enum(
    "kw_attention_mask",
    "KW_MASK_",
    (
        Value("none", "both widths are -1"),
        Value("top_left"),
        Value("bottom_right"),
        Value("generic", "of traits only: both alignments, all widths, and no mask. In traits, 1 and 2 mean causal"),
    ),
    """
    Which keys query i of a request sees, of its n queries and m keys: those j with
      place(i) - window_left <= j <= place(i) + window_right, where a width of -1 is no bound and
      place(i) = i (top left) or i + m - n (bottom right).
    Causal masks have window_left -1 and window_right 0. Rows that see nothing have O = 0 and LSE = -inf.
    """,
    function="kw_mask_name",
)

BIAS = Enum(
    "kw_attention_bias",
    "KW_BIAS_",
    (
        Value("none"),
        Value("elementwise", "bias[request, head, query, key] is added to the score"),
        Value("alibi", "-slope[head] * |place(i) - j|, place as the mask has it, without one bottom right"),
    ),
    function="kw_bias_name",
)

QSCALE = Enum(
    "kw_attention_qscale",
    "KW_QSCALE_",
    (
        Value("none"),
        Value("per_tensor", "descale_q, descale_k, descale_v: one number each"),
        Value(
            "block_scale",
            "descale_q: batch x heads_q x ceil(max_seqlen_q / scale_block_q); descale_k and descale_v: batch x"
            " heads_kv x ceil(max_seqlen_k / scale_block_k); dense",
        ),
        Value("kv_block_scale", "descale_q: one number; descale_k and descale_v: pages x heads_kv, dense"),
    ),
    "Factors of fp8 and bf8 operands, fp32: stored value * factor = value.",
    function="kw_qscale_name",
)

PAGE_TABLE = Enum(
    "kw_attention_page_table",
    "KW_PAGES_",
    (
        Value("none", "K and V are contiguous"),
        Value(
            "block",
            text="block table",
            meaning="vLLM: page_table[request * page_table_stride + key / page_size]; kv_lengths is 1",
        ),
        Value(
            "list",
            text="page list",
            meaning="SGLang: page_table[page_indptr[request] + key / page_size]; the request has"
            " (page_indptr[request + 1] - page_indptr[request] - 1) * page_size + last_page_lengths[request] keys, or"
            " none if it has no page; kv_lengths is 0",
        ),
    ),
    "How the pages of a request's keys are found. Tables are int32 and on the device.",
    function="kw_page_table_name",
)

PAGE_LAYOUT = Enum(
    "kw_attention_page_layout",
    "KW_PAGE_",
    (
        Value("linear", "by strides, as other tensors"),
        Value(
            "vectorized",
            "of one head: K is hdim_q / x, page_size, x; V is page_size / x, hdim_v, x; both dense. The row"
            " stride is 0",
        ),
    ),
    "Order of elements in a page; x elements take 16 bytes.",
    function="kw_page_layout_name",
)

ROPE = Enum(
    "kw_attention_rope",
    "KW_ROPE_",
    (
        Value("none"),
        Value("interleaved", "a = x[2 i], b = x[2 i + 1]"),
        Value("half", "a = x[i], b = x[i + rotary_dim / 2]"),
    ),
    """
    Which elements a rotary embedding turns together, out of the first rotary_dim of a row. With c and s of the row's
    place: (a, b) becomes (a c - b s, a s + b c).
    """,
    function="kw_rope_name",
)

"""The words of attention in the C ABI: operations, families of kernels, features."""

from __future__ import annotations

from kernelwright.problems.fields import Word


class AttentionOp(Word, c_type="kw_attention_op", prefix="KW_OP_", first=32):
    """
    Values of kw_problem.op: 32 to 47 are of this header. Callers ask for the first two and KW_OP_ATTENTION_APPEND; the
    dispatcher makes the others out of them, and kernels serve KW_OP_ATTENTION_PART to KW_OP_ATTENTION_CONVERT_DQ. All
    but append are described by kw_attention_problem.
    """

    ATTENTION = "attention", "O and LSE: a part, and a combination where it leaves splits"
    ATTENTION_BACKWARD = "attention backward", "dot, then gradients, then a conversion where dQ is left as sums"
    ATTENTION_PART = "attention part", "O and LSE, or splits of them where leaves_splits is 1"
    ATTENTION_COMBINE = "attention combine", "O and LSE from splits"
    ATTENTION_APPEND = "attention append", "kw_append_problem"
    ATTENTION_DOT = "attention dot", "D from O and dO"
    ATTENTION_DQ_DK_DV = "attention dq_dk_dv", "dK, dV and dbias; dQ, or sums of it where dq_slices is not 0"
    ATTENTION_CONVERT_DQ = "attention convert_dq", "dQ from its sums"


class Family(Word, c_type="kw_attention_family", prefix="KW_ATTENTION_", first=1):
    """What a kernel computes: `family` of its spec. A problem may take kernels of several, one after the other."""

    FWD = "fwd"
    FWD_SPLITKV = "fwd_splitkv", "parts of the keys, each with its own softmax"
    FWD_PAGEDKV = "fwd_pagedkv", "K and V in pages"
    BATCH_PREFILL = "batch_prefill", "ragged requests, K and V in pages"
    FWD_SPLITKV_COMBINE = "fwd_splitkv_combine", "puts the parts together"
    FWD_APPENDKV = "fwd_appendkv", "writes new K and V into the cache, with rotary embedding if asked for"
    BWD_DOT_DO_O = "bwd_dot_do_o", "D = rowsum(dO * O)"
    BWD_DQ_DK_DV = "bwd_dq_dk_dv"
    BWD_CONVERT_DQ = "bwd_convert_dq", "sums or converts the fp32 dQ"

    @property
    def backward(self) -> bool:
        """Does the kernel belong to the backward pass?"""
        return self.value.startswith("bwd")


class Mask(
    Word, c_type="kw_attention_mask", prefix="KW_MASK_", function="kw_mask_name", of_traits=("generic",)
):  # fmt: skip
    """
    Which keys query i of a request sees, of its n queries and m keys: those j with
      place(i) - window_left <= j <= place(i) + window_right, where a width of -1 is no bound and
      place(i) = i (top left) or i + m - n (bottom right).
    Causal masks have window_left -1 and window_right 0. Rows that see nothing have O = 0 and LSE = -inf.
    """

    NONE = "none", "both widths are -1"
    TOP_LEFT = "top_left"
    BOTTOM_RIGHT = "bottom_right"
    GENERIC = "generic", "of traits only: both alignments, all widths, and no mask. In traits, 1 and 2 mean causal"


class Bias(Word, c_type="kw_attention_bias", prefix="KW_BIAS_", function="kw_bias_name"):
    """What is added to the scores."""

    NONE = "none"
    ELEMENTWISE = "elementwise", "bias[request, head, query, key] is added to the score"
    ALIBI = "alibi", "-slope[head] * |place(i) - j|, place as the mask has it, without one bottom right"


class QScale(Word, c_type="kw_attention_qscale", prefix="KW_QSCALE_", function="kw_qscale_name"):
    """Factors of fp8 and bf8 operands, fp32: stored value * factor = value."""

    NONE = "none"
    PER_TENSOR = "per_tensor", "descale_q, descale_k, descale_v: one number each"
    BLOCK_SCALE = (
        "block_scale",
        "descale_q: batch x heads_q x ceil(max_seqlen_q / scale_block_q); descale_k and descale_v: batch x heads_kv x"
        " ceil(max_seqlen_k / scale_block_k); dense",
    )
    KV_BLOCK_SCALE = (
        "kv_block_scale",
        "descale_q: one number; descale_k and descale_v: pages x heads_kv, dense",
    )


class PageTable(Word, c_type="kw_attention_page_table", prefix="KW_PAGES_", function="kw_page_table_name"):
    """How the pages of a request's keys are found. Tables are int32 and on the device."""

    NONE = "none", "K and V are contiguous"
    BLOCK = "block", "vLLM: page_table[request * page_table_stride + key / page_size]; kv_lengths is 1"
    LIST = (
        "list",
        "SGLang: page_table[page_indptr[request] + key / page_size]; the request has (page_indptr[request + 1] -"
        " page_indptr[request] - 1) * page_size + last_page_lengths[request] keys, or none if it has no page;"
        " kv_lengths is 0",
    )


class PageLayout(Word, c_type="kw_attention_page_layout", prefix="KW_PAGE_", function="kw_page_layout_name"):
    """Order of elements in a page; x elements take 16 bytes."""

    LINEAR = "linear", "by strides, as other tensors"
    VECTORIZED = (
        "vectorized",
        "of one head: K is hdim_q / x, page_size, x; V is page_size / x, hdim_v, x; both dense. The row stride is 0",
    )


class Rope(Word, c_type="kw_attention_rope", prefix="KW_ROPE_", function="kw_rope_name"):
    """
    Which elements a rotary embedding turns together, out of the first rotary_dim of a row. With c and s of the row's
    place: (a, b) becomes (a c - b s, a s + b c).
    """

    NONE = "none"
    INTERLEAVED = "interleaved", "a = x[2 i], b = x[2 i + 1]"
    HALF = "half", "a = x[i], b = x[i + rotary_dim / 2]"

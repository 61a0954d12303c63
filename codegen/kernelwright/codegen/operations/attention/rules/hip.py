"""Which attention problems a CK Tile kernel serves: what vectors, 32-bit offsets, pages and grids take."""

from __future__ import annotations

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.widths import (
    bytes_fit_int32,
    element_bytes,
    fits_int32,
    fits_int64,
    fits_uint32,
    parts,
)
from kernelwright.codegen.operations.attention.kinds import AttentionOp, Bias, Family, PageTable, Rope
from kernelwright.codegen.operations.attention.rules.checks import append_traits_match, reads_kv, rows, traits_match
from kernelwright.codegen.operations.attention.rules.hip_sizes import BLOCK, MAX_GRID
from kernelwright.codegen.operations.attention.rules.structs import Append, Problem, Strides, Traits

HEADER = "launchers/hip/attention/conditions.h"
PREFIX = "kw_hip_attention"

# Elements of a rotary embedding that CK Tile reads at once, cosines and sines together.
ROTARY_VECTOR = 16
# Queries and keys of a problem with ALiBi: CK Tile takes distances as sums of absolute differences of 16-bit numbers
# (sad_u16 in ops/fmha/block/block_position_encoding.hpp), but for splits, which take 32 bits.
ALIBI_POSITIONS = 65536
# Positions and widths of windows are added up in 32 bits: a quarter of what they hold.
MOST_POSITIONS = 536870911
# Elements of a row that a tile may have beyond the last one: head dimensions and tiles of keys have 256 at most.
BEYOND_ROW = 256
# Waves of a kernel that puts splits together: each loads one, and there may be fewer.
COMBINING_WAVES = 8


def stride_fits(name: str, stride: int, size: int, aligned: int) -> Refusal:
    """Strides are 32-bit numbers."""
    if not fits_int32(stride):
        return f"a stride of {name} is {stride}: it does not fit into 31 bits"
    if stride * size % aligned != 0:
        return f"a stride of {name} is {stride} elements: rows are not aligned to {aligned} bytes"
    return None


def lines_fit(
    t: Traits, aligned: int, name: str, request: int, head: int, row: int, count: int, dtype: DType | None
) -> Refusal:
    """Byte offsets within a request's rows of a head, a tile beyond the last one, are 32-bit numbers.

    Loads add 2^31 to the offsets of what is masked, so that those are out of range.
    """
    size = element_bytes(dtype)
    reached = (count + max(t.tile_m0, t.tile_n0)) * max(row, 1) + BEYOND_ROW
    return (
        stride_fits(name, request, size, aligned)
        or stride_fits(name, head, size, aligned)
        or stride_fits(name, row, size, aligned)
        or (
            None
            if bytes_fit_int32(reached, size)
            else f"{name} has {count} rows of a head, {row} elements apart: byte offsets do not fit into 31 bits"
        )
    )


def tensor_fits(t: Traits, aligned: int, name: str, strides: Strides, count: int, dtype: DType | None) -> Refusal:
    """The same of a tensor of the problem."""
    return lines_fit(t, aligned, name, strides.request, strides.head, strides.row, count, dtype)


def product_fits(what: str, value: int) -> Refusal:
    """A number that kernels multiply in 32 bits."""
    if fits_int32(value):
        return None
    if fits_int64(value):
        return f"{what}: {value} does not fit into 31 bits"
    return f"{what}: the number does not fit into 31 bits"


def length_fits(value: int) -> Refusal:
    """Lengths are 32-bit numbers."""
    if fits_int32(value):
        return None
    return f"a length of the problem is {value}: it does not fit into 31 bits"


def to_last_request(p: Problem, hdim: int) -> int:
    """The larger of the strides of requests and heads in a dense tensor of values per row."""
    head = (p.total_q if p.group else p.max_seqlen_q) * hdim
    return p.heads_q * head if not p.group and p.batch > 1 and p.heads_q > 1 else head


def lengths_fit(p: Problem) -> Refusal:
    """Counts."""
    return (
        length_fits(p.batch)
        or length_fits(p.heads_q)
        or length_fits(p.heads_kv)
        or length_fits(p.hdim_q)
        or length_fits(p.hdim_v)
        or length_fits(p.max_seqlen_q)
        or length_fits(p.max_seqlen_k)
        or length_fits(p.total_q)
        or length_fits(p.total_k)
        or length_fits(p.pages)
        or length_fits(p.page_size)
        or length_fits(p.page_table_stride)
        or length_fits(p.min_seqlen_q)
        or length_fits(p.slopes_stride)
    )


def range_fits(t: Traits, p: Problem) -> Refusal:
    """Counts, and what kernels multiply in 32 bits."""
    keys = p.max_seqlen_k
    random_request = to_last_request(p, keys) if p.random_bytes else 0
    random_head = (p.max_seqlen_q + max(t.tile_m0, t.tile_n0)) * keys if p.random_bytes else 0
    return (
        lengths_fit(p)
        or product_fits("entries of LSE from one request to the next", to_last_request(p, 1))
        or product_fits("entries of the page table", p.batch * p.page_table_stride)
        or product_fits("slopes of all requests", p.batch * p.slopes_stride + p.heads_q)
        or product_fits("random bytes from one request to the next", random_request)
        or product_fits("random bytes of a head", random_head)
        or (
            f"{p.max_seqlen_q} queries and {keys} keys are more than the {MOST_POSITIONS} positions that a kernel can"
            " add up"
            if p.max_seqlen_q + keys > MOST_POSITIONS
            else None
        )
    )


def parts_fit(t: Traits, p: Problem) -> Refusal:
    """Parts that are addressed by 32-bit offsets, with a tile of queries and splits beyond the last ones."""
    part = p.op == AttentionOp.ATTENTION_PART
    splits = p.op == AttentionOp.ATTENTION_COMBINE or (part and p.leaves_splits)
    slices = p.dq_slices != 0 and not part
    count = parts(p.num_splits, COMBINING_WAVES) * COMBINING_WAVES if splits else max(p.dq_slices, 1)
    row = p.hdim_v if splits else p.hdim_q
    results = count * rows(p) * row
    reached = results + t.tile_m0 * row + BEYOND_ROW
    if (not splits and not slices) or bytes_fit_int32(reached, 4):
        return None
    return f"partial results have {results} elements: byte offsets do not fit into 31 bits"


def alibi_fits(t: Traits, p: Problem) -> Refusal:
    """Distances of ALiBi have 16 bits."""
    longest = max(p.max_seqlen_q, p.max_seqlen_k)
    reads = p.bias == Bias.ALIBI and reads_kv(p.op)
    if not reads or t.family == Family.FWD_SPLITKV or longest <= ALIBI_POSITIONS:
        return None
    return f"ALiBi with {longest} positions: CK Tile's distances have 16 bits, for {ALIBI_POSITIONS} positions at most"


def slices_match(t: Traits, p: Problem) -> Refusal:
    """Slices of dQ are tiles of keys of the kernel that made them."""
    slices = 1 if t.tile_n0 == 0 else parts(max(p.max_seqlen_k, 1), t.tile_n0)
    if t.family != Family.BWD_CONVERT_DQ or p.dq_slices == slices:
        return None
    return f"dQ is left as {p.dq_slices} sums, this kernel adds up {slices}"


def shared_heads_fit(t: Traits, p: Problem, aligned: int) -> Refusal:
    """Gradients of K and V for each head of Q, which are added up where heads share those of K and V."""
    if p.op != AttentionOp.ATTENTION_DQ_DK_DV or p.heads_q == p.heads_kv:
        return None
    count = p.total_k if p.group else p.max_seqlen_k
    batch = 1 if p.group else p.batch
    many = batch > 1
    head_k = count * p.hdim_q
    head_v = count * p.hdim_v
    request_k = p.heads_q * head_k if many else 0
    request_v = p.heads_q * head_v if many else 0
    sums = batch * count * p.heads_kv * max(p.hdim_q, p.hdim_v)
    return (
        lines_fit(t, aligned, "dK of every head of Q", request_k, head_k, p.hdim_q, count, p.dtype_kv)
        or lines_fit(t, aligned, "dV of every head of Q", request_v, head_v, p.hdim_v, count, p.dtype_kv)
        or (
            None if fits_uint32(sums + BLOCK) else f"gradients of K have {sums} elements, more than a launch can add up"
        )
    )


def grid_fits(y: int, z: int) -> Refusal:
    """Workgroups along y and z."""
    if y <= MAX_GRID and z <= MAX_GRID:
        return None
    return f"{max(y, z)} heads, requests or tiles are more than the {MAX_GRID} that a grid can have"


def places(t: Traits, p: Problem) -> int:
    """Places of keys that batch_prefill keeps for a request: behind them the rest of a tile, and one loaded ahead."""
    return (parts(p.max_seqlen_k, t.tile_n0) + 1) * t.tile_n0


def follow(p: Problem, strides: Strides) -> bool:
    """Whether the rows of a request lie behind those of the one before, as the kernels of ragged requests read them."""
    return p.batch < 2 or p.max_seqlen_q == 1 or strides.request == p.max_seqlen_q * strides.row


def requests_follow(t: Traits, p: Problem, aligned: int) -> Refusal:
    """Requests of one length are served by batch_prefill as ragged ones, whose LSE lies otherwise."""
    if t.family != Family.BATCH_PREFILL or p.group:
        return None
    one = p.max_seqlen_q == 1
    biased = p.bias == Bias.ELEMENTWISE
    if not follow(p, p.q) or not follow(p, p.o) or (biased and not follow(p, p.bias_strides)):
        return "the rows of a request do not lie behind those of the one before"
    if p.batch > 1 and (p.lse or p.random_bytes):
        return "LSE and random bytes lie by heads and requests, this kernel writes them by heads alone"
    bias = p.bias_strides
    return (
        (lines_fit(t, aligned, "Q of single queries", 0, p.q.head, p.q.request, 1, p.dtype_q) if one else None)
        or (lines_fit(t, aligned, "O of single queries", 0, p.o.head, p.o.request, 1, p.dtype_o) if one else None)
        or (
            lines_fit(t, aligned, "bias of single queries", 0, bias.head, bias.request, 1, p.dtype_bias)
            if one and biased
            else None
        )
    )


def pages_fit(t: Traits, p: Problem) -> Refusal:
    """Tiles of keys lie in one page; places of keys are found by one multiplication."""
    if p.page_table == PageTable.NONE:
        return None
    if t.family == Family.BATCH_PREFILL:
        even = p.k.request == p.page_size * p.k.row and p.v.request == p.page_size * p.v.row
        if not even or not fits_int32(p.pages * p.page_size):
            return "the keys of neighbouring pages are not everywhere equally far apart in memory"
        return product_fits("places of keys of all requests", p.batch * (places(t, p) + BLOCK))
    if p.page_size > 0 and p.page_size % t.tile_n0 == 0:
        return None
    return f"page_size is {p.page_size}, this kernel serves multiples of its tile of {t.tile_n0} keys"


def operands_fit(t: Traits, p: Problem, aligned: int) -> Refusal:
    """The tensors that a stage touches."""
    queries = p.max_seqlen_q
    paged = p.page_table != PageTable.NONE
    cached = p.pages * p.page_size if t.family == Family.BATCH_PREFILL else p.page_size
    keys = cached if paged else p.max_seqlen_k
    gradients = p.op == AttentionOp.ATTENTION_DQ_DK_DV
    converts = p.op == AttentionOp.ATTENTION_CONVERT_DQ
    scores = reads_kv(p.op)
    biased = scores and p.bias == Bias.ELEMENTWISE
    writes_dq = converts or (gradients and p.dq_slices == 0)
    reads_do = gradients or p.op == AttentionOp.ATTENTION_DOT
    return (
        (tensor_fits(t, aligned, "Q", p.q, queries, p.dtype_q) if scores else None)
        or (tensor_fits(t, aligned, "K", p.k, keys, p.dtype_kv) if scores else None)
        or (tensor_fits(t, aligned, "V", p.v, keys, p.dtype_kv) if scores else None)
        or (tensor_fits(t, aligned, "O", p.o, queries, p.dtype_o) if not converts and not gradients else None)
        or (tensor_fits(t, aligned, "dO", p.d_o, queries, p.dtype_o) if reads_do else None)
        or (tensor_fits(t, aligned, "dQ", p.dq, queries, p.dtype_q) if writes_dq else None)
        or (tensor_fits(t, aligned, "dK", p.dk, keys, p.dtype_kv) if gradients else None)
        or (tensor_fits(t, aligned, "dV", p.dv, keys, p.dtype_kv) if gradients else None)
        or (tensor_fits(t, aligned, "bias", p.bias_strides, queries, p.dtype_bias) if biased else None)
        or (tensor_fits(t, aligned, "dbias", p.dbias_strides, queries, p.dtype_bias) if biased and p.dbias else None)
    )


def check(t: Traits, p: Problem, aligned: int) -> Refusal:
    """What is checked of attention but the struct itself; strides are multiples of ``aligned`` bytes."""
    part = p.op == AttentionOp.ATTENTION_PART
    tiles = 1 if t.tile_m0 == 0 else parts(p.max_seqlen_q, t.tile_m0)
    return (
        traits_match(t, p)
        or range_fits(t, p)
        or parts_fit(t, p)
        or alibi_fits(t, p)
        or slices_match(t, p)
        or operands_fit(t, p, aligned)
        or shared_heads_fit(t, p, aligned)
        or (pages_fit(t, p) if part else None)
        or (requests_follow(t, p, aligned) if part else None)
        or (
            "there are no keys; this kernel serves whole tiles of them"
            if part and p.max_seqlen_k == 0 and not t.pad_sk
            else None
        )
        or grid_fits(max(p.heads_q, tiles), max(p.batch, tiles))
    )


def append_range_fits(p: Append) -> Refusal:
    """What kernels of append multiply in 32 bits; its lengths go with strides, which tensor_fits sees."""
    angles = p.rotary_places * p.rotary_dim if p.rope != Rope.NONE else 0
    copied = p.batch * p.seqlen_q * p.heads_q * p.hdim_q if p.rotates_q else 0
    return (
        product_fits("new keys", p.seqlen_new)
        or product_fits("queries", p.seqlen_q)
        or product_fits("entries of the page table", p.batch * p.page_table_stride)
        or product_fits("a page", p.page_size)
        or product_fits("a row of the page table", p.page_table_stride)
        or product_fits("angles of all places", angles)
        or (None if fits_uint32(copied + BLOCK) else f"q has {copied} elements, more than a launch can copy")
    )


def append_tensors_fit(t: Traits, p: Append, aligned: int) -> Refusal:
    """New rows, the cache, and queries that are turned."""
    keys = p.page_size if p.page_table != PageTable.NONE else p.capacity
    return (
        tensor_fits(t, aligned, "the new K", p.k, p.seqlen_new, p.dtype)
        or tensor_fits(t, aligned, "the new V", p.v, p.seqlen_new, p.dtype)
        or tensor_fits(t, aligned, "the cache of K", p.k_cache, keys, p.dtype)
        or tensor_fits(t, aligned, "the cache of V", p.v_cache, keys, p.dtype)
        or (tensor_fits(t, aligned, "q", p.q, p.seqlen_q, p.dtype) if p.rotates_q else None)
        or (tensor_fits(t, aligned, "q_out", p.q_out, p.seqlen_q, p.dtype) if p.rotates_q else None)
    )


def append_tiles_fit(t: Traits, p: Append) -> Refusal:
    """Tiles of queries and of new keys, which lie in two pages at most."""
    whole_q = t.pad_s or p.seqlen_q % t.tile_m0 == 0
    whole_k = t.pad_sk or p.seqlen_new % t.tile_n0 == 0
    if not whole_q or not whole_k:
        return f"this kernel serves whole tiles of {t.tile_m0} queries and {t.tile_n0} new keys"
    together = min(p.seqlen_new, t.tile_n0)
    if p.page_table != PageTable.NONE and p.page_size < together:
        return f"page_size is {p.page_size}: the {together} keys that are written at once lie in more than two pages"
    if p.rope != Rope.NONE and p.rotary_dim % ROTARY_VECTOR != 0:
        return f"rotary_dim is {p.rotary_dim}, this kernel serves multiples of {ROTARY_VECTOR}"
    return None


def append_check(t: Traits, p: Append, aligned: int) -> Refusal:
    """The same of KW_OP_ATTENTION_APPEND."""
    return (
        append_traits_match(t, p)
        or append_range_fits(p)
        or append_tensors_fit(t, p, aligned)
        or append_tiles_fit(t, p)
        or grid_fits(max(p.heads_q, p.heads_kv), p.batch)
    )

"""Whether an attention kernel serves a problem, or a stage of one, as far as its traits tell."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention.kinds import Family
from kernelwright.codegen.operations.attention.time_model.memory import MEMORY
from kernelwright.codegen.operations.attention.time_model.posed import Posed, Stage
from kernelwright.codegen.operations.attention.time_model.traits import Traits, Words

STAGES = {
    Family.FWD: Stage.PART,
    Family.FWD_SPLITKV: Stage.PART,
    Family.FWD_PAGEDKV: Stage.PART,
    Family.BATCH_PREFILL: Stage.PART,
    Family.FWD_SPLITKV_COMBINE: Stage.COMBINE,
    Family.FWD_APPENDKV: Stage.APPEND,
    Family.BWD_DOT_DO_O: Stage.DOT,
    Family.BWD_DQ_DK_DV: Stage.DQ_DK_DV,
    Family.BWD_CONVERT_DQ: Stage.CONVERT_DQ,
}
"""The stage that kernels of a family serve."""
READS_KV = (Stage.PART, Stage.DQ_DK_DV)


def serves(t: Traits, p: Posed, arch: Arch) -> bool:
    """The checks of attention/checks.h but those of splits, and what each backend asks of memory."""
    stage = p.main
    reads_q, reads_o = stage not in (Stage.COMBINE, Stage.DOT), stage is not Stage.CONVERT_DQ
    dtypes = (
        (not reads_q or p.dtype == t.dtype_q)
        and (stage not in READS_KV or p.dtype_kv == t.dtype_kv)
        and (not reads_o or p.dtype_o == t.dtype_o)
        and (p.bias != "elementwise" or stage not in READS_KV or p.dtype_bias == t.dtype_bias)
    )
    if not dtypes or not t.hdims_fit(p.hdim_q if reads_q else None, p.hdim_v if reads_o else None):
        return False
    if not _has(t.groups, p.group) or not _lengths(t, p) or not _variant(t, p):
        return False
    return MEMORY[arch.backend](t, p)


def mask_kind(p: Posed) -> str:
    """The mask of traits that serve exactly this problem: windows are generic."""
    return p.mask if p.mask == "none" or p.window == (-1, 0) else "generic"


def leaves(t: Traits, splits: int) -> bool:
    """Whether a part with so many splits leaves them to a combination."""
    return "yes" in t.leaves_splits if splits > 1 else t.leaves_splits == {"yes"}


def dq_slices(t: Traits, p: Posed) -> int:
    """Sums of dQ that a kernel leaves."""
    return -(-max(p.seqlen_k, 1) // max(t.tile_n0, 1)) if t.leaves_dq == 2 else t.leaves_dq


def _has(words: Words, value: object) -> bool:
    return ("yes" if value else "no") in words


def _lengths(t: Traits, p: Posed) -> bool:
    """Lengths that are known on the device only need padding."""
    tiles_q, tiles_k = not t.pad_s and t.tile_m0 != 0, not t.pad_sk and t.tile_n0 != 0
    if tiles_q and (p.group or p.seqlen_q % t.tile_m0):
        return False
    if p.main in READS_KV and tiles_k and (p.group or p.kv_lengths or p.seqlen_k % t.tile_n0):
        return False
    return t.max_seqlen_q == 0 or p.seqlen_q <= t.max_seqlen_q


def _variant(t: Traits, p: Posed) -> bool:
    stage = p.main
    if stage is Stage.PART:
        own = (
            p.page_table in t.page_tables
            and (p.page_table == "none" or (t.page_size in (0, p.page_size) and p.page_layout in t.page_layouts))
            and _has(t.sinks, p.sink)
            and _has(t.min_seqlens_q, p.min_seqlen_q)
            and p.qscale in t.qscales
        )
        return own and _scores(t, p) and (t.family is Family.FWD_SPLITKV or _has(t.lses, p.lse))
    if stage is Stage.COMBINE:
        return _has(t.lses, p.lse) and 1 <= p.num_splits <= t.max_splits
    if stage is Stage.DQ_DK_DV:
        return _scores(t, p) and _has(t.dbiases, p.dbias) and _has(t.deterministics, p.deterministic)
    return True


def _scores(t: Traits, p: Posed) -> bool:
    masks = not t.masks.isdisjoint((mask_kind(p), "generic"))
    features = (
        _has(t.dropouts, p.dropout_p > 0)
        and _has(t.random_bytes, p.random_bytes)
        and _has(t.soft_caps, p.soft_cap != 0)
        and _has(t.kv_lengths, p.kv_lengths)
    )
    return masks and features and p.bias in t.biases

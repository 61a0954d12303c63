"""The readable name of a kernel: CK Tile's grammar, completed until two specs never share a name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping

from pydantic import BaseModel

from kernelwright.codegen.operations.attention.kinds import Bias, KvLookupTable, Mask, PageLayout, QScale, Rope
from kernelwright.codegen.operations.attention.spec import AttentionSpec

MAX_NAME = 240

_MASKS = {Mask.TOP_LEFT: "tlmask", Mask.BOTTOM_RIGHT: "brmask", Mask.GENERIC: "mask"}
_BIASES = {Bias.ELEMENTWISE: "bias", Bias.ALIBI: "alibi"}
_QSCALES = {QScale.PER_TENSOR: "qpt", QScale.BLOCK_SCALE: "qbs", QScale.KV_BLOCK_SCALE: "qkvbs"}
_ROPES = {Rope.INTERLEAVED: "ropei", Rope.HALF: "ropeh"}

# Field → its part of the name; one that is "" at the field's default. No two parts of different fields are alike.
_FEATURES: Mapping[str, Callable[[AttentionSpec], str]] = {
    "v_layout": lambda spec: "vcol" if spec.v_layout == "col" else "",
    "logits_soft_cap": lambda spec: "cap" if spec.logits_soft_cap else "",
    "mask": lambda spec: _MASKS.get(spec.mask, ""),
    "bias": lambda spec: _BIASES.get(spec.bias, ""),
    "lse": lambda spec: "lse" if spec.lse else "",
    "dropout": lambda spec: "drop" if spec.dropout else "",
    "qscale": lambda spec: _QSCALES.get(spec.qscale, ""),
    "rope": lambda spec: _ROPES.get(spec.rope, ""),
    "paged_kv": lambda spec: "paged" if spec.paged_kv else "",
    "static_quant": lambda spec: "squant" if spec.static_quant else "",
    "skip_min_seqlen_q": lambda spec: "skip" if spec.skip_min_seqlen_q else "",
    "sink": lambda spec: "sink" if spec.sink else "",
    "dbias": lambda spec: "dbias" if spec.dbias else "",
    "store_randval": lambda spec: "rand" if spec.store_randval else "",
    "deterministic": lambda spec: "det" if spec.deterministic else "",
    "kv_memory_layout": lambda spec: "vec" if spec.kv_memory_layout is PageLayout.VECTORIZED else "",
    "kv_lookup_table": lambda spec: "sgl" if spec.kv_lookup_table is KvLookupTable.SGLANG else "",
    "page_size": lambda spec: _counted("pg", spec.page_size, 0),
    "trload": lambda spec: "tr" if spec.trload else "",
    "block_per_cu": lambda spec: _counted("o", spec.block_per_cu, -1),
    "num_wave_groups": lambda spec: _counted("wg", spec.num_wave_groups, 1),
    "max_splits_log2": lambda spec: _counted("ms", spec.max_splits_log2, 0),
    "max_seq_len_q": lambda spec: _counted("mq", spec.max_seq_len_q, 0),
    "hdim_q_alignment": lambda spec: _counted("aq", spec.hdim_q_alignment, 0),
    "hdim_v_alignment": lambda spec: _counted("av", spec.hdim_v_alignment, 0),
    "constraint_tag": lambda spec: "few" if spec.constraint_tag == "few_blocks" else "",
}


def kernel_name(spec: AttentionSpec) -> str:
    """A file name of at most 240 characters from [a-z 0-9 _], unique within an architecture; never parse it.

    ``fmha_<family>_<dtype>_<batch|group>_h<Q>x<V>_<pipeline>_<tile>_<waves>_<warp tiles>_<padding>``, then a part for
    each remaining field that differs from its default. Only specs that rules refuse have so many features that the end
    of their names is a digest.
    """
    mode = "group" if spec.group else "batch"
    parts = [f"fmha_{spec.family}_{spec.dtype}_{mode}_h{spec.hdim_q}x{spec.hdim_v}_{spec.pipeline}"]
    parts += _extents(spec)
    pad = spec.pad
    parts.append("p" + "s" * pad.s + "sk" * pad.sk + "d" * pad.d + "dv" * pad.dv if any(_values(pad)) else "npad")
    parts += (part(spec) for part in _FEATURES.values())
    name = "_".join(part for part in parts if part)
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME - 17]}_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return name


def _extents(spec: AttentionSpec) -> Iterator[str]:
    """Extents that are 0 at the end are left out, and a model of which all are."""
    for letters, model in (("b", spec.tile), ("bb", spec.bwd_tile), ("r", spec.wave), ("w", spec.warp_tile)):
        values = list(_values(model))
        while values and not values[-1]:
            values.pop()
        if values:
            yield letters + "x".join(map(str, values))


def _values(model: BaseModel) -> Iterator[int]:
    return (getattr(model, name) for name in type(model).model_fields)


def _counted(letters: str, value: int, default: int) -> str:
    return "" if value == default else f"{letters}{value}"

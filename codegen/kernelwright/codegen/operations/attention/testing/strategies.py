"""Attention specs drawn by hypothesis."""

from __future__ import annotations

from enum import StrEnum

from hypothesis import strategies as st
from pydantic import BaseModel

from kernelwright.codegen.operations.attention.spec import (
    MAX_EXTENT,
    MAX_HDIM,
    MAX_LENGTH,
    MAX_STAGE,
    AttentionSpec,
    BwdTile,
    Pad,
    Stages,
    Tile,
)

_BOUNDS = {
    "hdim_q": (1, MAX_HDIM),
    "hdim_v": (1, MAX_HDIM),
    "page_size": (0, MAX_LENGTH),
    "block_per_cu": (-1, 64),
    "num_wave_groups": (0, 8),
    "max_splits_log2": (0, 12),
    "max_seq_len_q": (0, MAX_LENGTH),
    "hdim_q_alignment": (0, 64),
    "hdim_v_alignment": (0, 64),
}


def specs() -> st.SearchStrategy[AttentionSpec]:
    """Any well-formed spec, legal or not."""
    return st.builds(AttentionSpec, **{name: _values(name) for name in AttentionSpec.model_fields})


def _values(name: str) -> st.SearchStrategy[object]:
    kind = AttentionSpec.model_fields[name].annotation
    if name == "op":
        return st.just("attention")
    if kind is bool:
        return st.booleans()
    if kind is int:
        low, high = _BOUNDS[name]
        return st.integers(low, high) | st.sampled_from((low, min(16, high), high))
    if kind is Pad:
        return st.builds(Pad, **dict.fromkeys(Pad.model_fields, st.booleans()))
    if kind in (Tile, BwdTile):
        return _extents(kind, MAX_EXTENT)
    if kind is Stages:
        return _extents(kind, MAX_STAGE)
    assert isinstance(kind, type) and issubclass(kind, StrEnum), name
    return st.sampled_from(list(kind))


def _extents(kind: type[BaseModel], high: int) -> st.SearchStrategy[object]:
    one = st.just(0) | st.integers(0, high) | st.sampled_from((16, 32, 64, 128))
    return st.builds(kind, **dict.fromkeys(kind.model_fields, one))

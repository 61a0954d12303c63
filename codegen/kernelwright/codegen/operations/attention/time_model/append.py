"""New keys and values of a cache: problems as programs pose them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.attention.time_model.shapes import Extents, Strides
from kernelwright.codegen.violations import SpecError

TENSORS = ("q", "q_out", "k", "v", "k_cache", "v_cache")
_NEEDED = ("batch", "heads_kv", "seqlen_new", "hdim_q", "capacity")


@dataclass(frozen=True)
class TimedAppend:
    """The fields of ``kernelwright.dispatch.AppendProblem``, completed; ``strides`` are those of TENSORS."""

    batch: int
    heads_kv: int
    seqlen_new: int
    hdim_q: int
    capacity: int
    hdim_v: int = 0
    dtype: str = "fp16"
    dtype_rotary: str = ""
    rope: str = "none"
    rotary_dim: int = 0
    rotary_places: int = 0
    heads_q: int = 0
    seqlen_q: int = 0
    page_table: str = "none"
    page_layout: str = "linear"
    pages: int = 0
    page_size: int = 0
    page_table_stride: int = 0
    strides: tuple[Strides, ...] = ()

    @property
    def elements(self) -> int:
        """Elements that are written: new rows, and queries that are rotated."""
        keys, queries = self.heads_kv * self.seqlen_new * (self.hdim_q + self.hdim_v), self.heads_q * self.seqlen_q
        return self.batch * (keys + queries * self.hdim_q)

    def extents(self, tensor: str) -> Extents:
        """Requests (or pages), heads, rows and head dimension."""
        hdim = self.hdim_v if tensor.startswith("v") else self.hdim_q
        if tensor in ("q", "q_out"):
            return Extents(self.batch, self.heads_q, self.seqlen_q, hdim)
        if tensor in ("k", "v"):
            return Extents(self.batch, self.heads_kv, self.seqlen_new, hdim)
        if self.page_table == "none":
            return Extents(self.batch, self.heads_kv, self.capacity, hdim)
        if self.page_layout == "vectorized":
            return Extents(self.pages, self.heads_kv, 1, self.page_size * hdim)
        return Extents(self.pages, self.heads_kv, self.page_size, hdim)


def read_append(raw: Mapping[str, Any]) -> TimedAppend:
    """The problem of a trace's entry. SpecError for unknown fields and values of the wrong kind."""
    own = tuple(field.name for field in fields(TimedAppend) if field.name != "strides")
    known = (*own, *(f"{name}_strides" for name in TENSORS))
    if unknown := sorted(set(raw) - set(known)):
        raise SpecError(f"an append has unknown fields {', '.join(unknown)}; allowed: {', '.join(known)}")
    if missing := [name for name in _NEEDED if name not in raw]:
        raise SpecError(f"an append lacks {', '.join(missing)}: {dict(raw)!r}")
    try:
        problem = TimedAppend(**{name: raw[name] for name in own if raw.get(name) is not None})
        rotary = (problem.dtype_rotary or problem.dtype) if problem.rope != "none" else ""
        problem = replace(problem, hdim_v=problem.hdim_v or problem.hdim_q, dtype_rotary=rotary)
        counts = [getattr(problem, field.name) for field in fields(TimedAppend) if field.type == "int"]
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("extents and counts are whole numbers, at least 0")
        if problem.rope not in ("none", "interleaved", "half") or problem.page_table not in ("none", "block"):
            raise ValueError(f"rope is {problem.rope!r} and page_table {problem.page_table!r}")
        DType(problem.dtype)
        strides = tuple(problem.extents(name).strides(raw.get(f"{name}_strides")) for name in TENSORS)
    except (TypeError, ValueError) as error:
        raise SpecError(f"{dict(raw)!r} is no append: {error}") from None
    return replace(problem, strides=strides)

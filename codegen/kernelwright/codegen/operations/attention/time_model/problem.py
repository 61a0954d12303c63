"""Attention as programs pose it, and the problems of its stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.inputs import check_kinds
from kernelwright.codegen.operations.attention.time_model.shapes import Extents, Strides
from kernelwright.codegen.violations import SpecError
from kernelwright.problems.shared import RESULT


class Stage(StrEnum):
    """What kernels serve: operations of the C ABI."""

    PART = "part"
    COMBINE = "combine"
    APPEND = "append"
    DOT = "dot"
    DQ_DK_DV = "dq_dk_dv"
    CONVERT_DQ = "convert_dq"


TENSORS = ("q", "k", "v", "o", "bias", "do", "dq", "dk", "dv", "dbias")
_BACKWARD = ("do", "dq", "dk", "dv")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "direction": ("forward", "backward"),
    "mask": ("none", "top_left", "bottom_right"),
    "bias": ("none", "elementwise", "alibi"),
    "page_table": ("none", "block", "list"),
    "page_layout": ("linear", "vectorized"),
    "qscale": ("none", "per_tensor", "block_scale", "kv_block_scale"),
}


@dataclass(frozen=True)
class TimedProblem:
    """The fields of ``kernelwright.dispatch.AttentionProblem``, completed; of a stage, with what is chosen for it.

    ``strides`` are those of TENSORS, of requests (or pages), heads and rows; zeros for what the problem lacks.
    """

    direction: str
    batch: int
    heads_q: int
    heads_kv: int
    seqlen_q: int
    seqlen_k: int
    hdim_q: int
    hdim_v: int = 0
    dtype: str = "fp16"
    dtype_kv: str = ""
    dtype_o: str = ""
    dtype_bias: str = ""
    group: bool = False
    total_q: int = 0
    total_k: int = 0
    kv_lengths: bool = False
    mask: str = "none"
    window: tuple[int, int] = (-1, -1)
    bias: str = "none"
    slopes_stride: int = 0
    scale: float = 0.0
    soft_cap: float = 0.0
    sink: bool = False
    dropout_p: float = 0.0
    random_bytes: bool = False
    lse: bool = False
    min_seqlen_q: int = 0
    page_table: str = "none"
    page_layout: str = "linear"
    pages: int = 0
    page_size: int = 0
    page_table_stride: int = 0
    qscale: str = "none"
    scale_block_q: int = 0
    scale_block_k: int = 0
    num_splits: int = 1
    dbias: bool = False
    deterministic: bool = False
    strides: tuple[Strides, ...] = ()
    stage: Stage | None = None
    leaves_splits: bool = False
    dq_slices: int = 0

    @property
    def main(self) -> Stage:
        """The stage itself, or that of the whole whose kernel decides what the other stages do."""
        return self.stage or (Stage.PART if self.direction == "forward" else Stage.DQ_DK_DV)

    @property
    def rows(self) -> int:
        """Rows of LSE: requests x heads x queries."""
        return self.heads_q * (self.total_q if self.group else self.batch * self.seqlen_q)

    def stride(self, tensor: str) -> Strides:
        """Strides of requests (or pages), heads and rows."""
        return self.strides[TENSORS.index(tensor)]

    def extents(self, tensor: str) -> Extents:
        """Requests (or pages), heads, rows and head dimension."""
        name = "o" if tensor == "do" else tensor.removeprefix("d")
        requests, rows = (1, self.total_q) if self.group else (self.batch, self.seqlen_q)
        if name in ("q", "o", "bias"):
            inner = {"q": self.hdim_q, "o": self.hdim_v, "bias": self.seqlen_k}[name]
            return Extents(requests, self.heads_q, rows, inner)
        requests, rows = (1, self.total_k) if self.group else (self.batch, self.seqlen_k)
        if self.page_table != "none":
            requests, rows = self.pages, self.page_size
        inner = self.hdim_q if name == "k" else self.hdim_v
        if self.page_layout == "vectorized":
            rows, inner = 1, rows * inner
        return Extents(requests, self.heads_kv, rows, inner)


_GIVEN = tuple(
    field.name for field in fields(TimedProblem) if field.name not in ("strides", "stage", "leaves_splits", "dq_slices")
)
_STRIDES = tuple(f"{name}_strides" for name in TENSORS)
_NEEDED = ("direction", "batch", "heads_q", "heads_kv", "seqlen_q", "seqlen_k", "hdim_q")


def read_fields(raw: Mapping[str, Any]) -> TimedProblem:
    """The problem of a trace's entry. SpecError for unknown fields and values of the wrong kind."""
    known = (*_GIVEN, *_STRIDES)
    if unknown := sorted(set(raw) - set(known)):
        raise SpecError(f"an attention problem has unknown fields {', '.join(unknown)}; allowed: {', '.join(known)}")
    if missing := [name for name in _NEEDED if name not in raw]:
        raise SpecError(f"an attention problem lacks {', '.join(missing)}: {dict(raw)!r}")
    try:
        stated = {name: _hashable(raw[name]) for name in _GIVEN if raw.get(name) is not None}
        plain = TimedProblem(**stated)
        check_kinds(plain)
        problem = _completed(plain, "window" in stated)
        _check(problem)
        strides = (_strides(problem, name, raw.get(f"{name}_strides")) for name in TENSORS)
        return replace(problem, strides=tuple(strides), num_splits=_splits(raw))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise SpecError(f"{dict(raw)!r} is no attention problem: {error}") from None


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _splits(raw: Mapping[str, Any]) -> int:
    stated = raw.get("num_splits")
    splits = (0 if raw["direction"] == "forward" else 1) if stated is None else stated
    if type(splits) is not int or splits < 0:
        raise ValueError(f"num_splits is {splits!r}")
    return splits


def _completed(given: TimedProblem, windowed: bool) -> TimedProblem:
    """With what follows from other fields."""
    dtype_o = given.dtype_o or RESULT[DType(given.dtype)]
    causal = given.mask != "none" and not windowed
    return replace(
        given, hdim_v=given.hdim_v or given.hdim_q, dtype_kv=given.dtype_kv or given.dtype, dtype_o=dtype_o,
        dtype_bias=(given.dtype_bias or dtype_o) if given.bias == "elementwise" else "",
        window=(-1, 0) if causal else given.window, scale=given.scale or 1 / math.sqrt(given.hdim_q),
    )  # fmt: skip


def _check(problem: TimedProblem) -> None:
    for name, allowed in _WORDS.items():
        if getattr(problem, name) not in allowed:
            raise ValueError(f"{name} is {getattr(problem, name)!r}; allowed: {', '.join(allowed)}")
    for name in ("dtype_kv", "dtype_o"):
        DType(getattr(problem, name))
    counts = [getattr(problem, field.name) for field in fields(TimedProblem) if field.type == "int"]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("extents and counts are whole numbers, at least 0")
    if not min(problem.heads_q, problem.heads_kv, problem.hdim_q, problem.hdim_v) or problem.heads_q % problem.heads_kv:
        raise ValueError("heads and head dimensions are at least 1, and heads_q a multiple of heads_kv")
    if len(problem.window) != 2 or not all(type(width) is int and width >= -1 for width in problem.window):
        raise ValueError(f"window is {problem.window!r}; allowed: two numbers, at least -1")


def _strides(problem: TimedProblem, name: str, given: Sequence[int] | None) -> Strides:
    absent = (name in _BACKWARD and problem.direction == "forward") or (
        (name == "bias" and problem.bias != "elementwise") or (name == "dbias" and not problem.dbias)
    )
    if absent:
        return 0, 0, 0
    return problem.extents(name).strides(given, rows_inside="bias" in name)

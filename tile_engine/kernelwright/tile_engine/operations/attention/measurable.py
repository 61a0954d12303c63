"""The operation: its records, launches and work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.dispatch import (
    AppendPlan,
    AppendProblem,
    AttentionPlan,
    AttentionProblem,
    OperationPlan,
    ProblemError,
)
from kernelwright.dispatch.arrays import dtypes
from kernelwright.problems.attention.pairs import visible_pairs
from kernelwright.tile_engine.learning.attention import AttentionLearning
from kernelwright.tile_engine.operation import Measurable, Operands, Record
from kernelwright.tile_engine.operations.attention.append_operands import AppendOperands
from kernelwright.tile_engine.operations.attention.operands import AttentionOperands, names_of
from kernelwright.tile_engine.operations.attention.records import record_of
from kernelwright.tile_engine.operations.attention.requests import MOST_REQUESTS, problem_of, requests_of
from kernelwright.tile_engine.operations.attention.words import WORDS
from kernelwright.tile_engine.problems.attention import ATTENTION_SETS
from kernelwright.tile_engine.problems.attention_models import attention_origins

DIRECTIONS = ("forward", "backward", "append")
_NEEDED = ("seqlen_q", "nhead_q", "hdim_q")
_FLAGS = ("sink", "ragged", "lse", "deterministic")
_DEFAULTS: dict[str, Any] = {
    **{"direction": "forward", "batch": 1, "mask": "none", "window_left": -1, "bias": "none", "soft_cap": 0.0},
    **{"page_size": 0, "rotary_dim": 0, "num_splits": 0, "dtype": "fp16", **dict.fromkeys(_FLAGS, 0)},
}
_AUXILIARY = ("fwd_splitkv_combine", "bwd_dot_do_o", "bwd_convert_dq")
# Columns that a direction does not use must keep their defaults.
_UNREAD = {
    "forward": ("rotary_dim", "deterministic"),
    "backward": ("page_size", "rotary_dim", "num_splits", "sink", "lse"),
    "append": ("mask", "bias", "soft_cap", "sink", "num_splits", "lse", "deterministic"),
}


class Attention(Measurable):
    """See :class:`kernelwright.tile_engine.operation.Measurable`. Columns are those of CK Tile, and features.

    ``forward`` covers prompts and, with one query, decoding; with a page size, K and V are a paged cache. ``backward``
    computes dQ, dK and dV. ``append`` writes ``seqlen_q`` new rows into a cache that then holds ``seqlen_k``, with
    rotary embedding of K and Q where ``rotary_dim`` is not 0.
    """

    name = "attention"
    problem_sets, words = ATTENTION_SETS, WORDS
    columns: Sequence[str] = (
        *("direction", "batch", "seqlen_q", "seqlen_k", "nhead_q", "nhead_k", "hdim_q", "hdim_v"),
        *("mask", "window_left", "window_right", "bias", "soft_cap", "sink", "ragged", "page_size", "rotary_dim"),
        *("num_splits", "lse", "deterministic", "dtype"),
    )

    def __init__(self) -> None:
        self.learning = AttentionLearning(self.problem)

    def read(self, record: Record) -> Record:
        """Keys are the columns; seqlen_q, nhead_q and hdim_q have no default.

        Those of K and V default to the same values, a mask is causal unless a window is stated; sink, ragged, lse and
        deterministic are 0 or 1.
        """
        if unknown := sorted(set(record) - set(self.columns)):
            raise ValueError(f"an attention problem has unknown keys {unknown}; allowed: {', '.join(self.columns)}")
        if missing := [key for key in _NEEDED if key not in record]:
            raise ValueError(f"an attention problem lacks {', '.join(missing)}: {dict(record)!r}")
        own = {"seqlen_k": "seqlen_q", "nhead_k": "nhead_q", "hdim_v": "hdim_q"}
        whole = {**_DEFAULTS, **{key: record[like] for key, like in own.items()}, **record}
        whole.setdefault("window_right", -1 if whole["mask"] == "none" else 0)
        whole |= {key: int(whole[key]) for key in _FLAGS if whole[key] in (False, True)}
        try:
            self._check(whole)
            self.problem(whole)
        except (ProblemError, TypeError, ValueError) as error:
            raise ValueError(f"{dict(record)!r}: {error}") from None
        return {key: whole[key] for key in self.columns}

    @staticmethod
    def _check(whole: Record) -> None:
        """Raise ValueError for errors that the problem itself would not notice."""
        if whole["direction"] not in DIRECTIONS:
            raise ValueError(f"direction is {whole['direction']!r}; allowed: {', '.join(DIRECTIONS)}")
        if not isinstance(whole["batch"], int) or whole["batch"] > MOST_REQUESTS:
            raise ValueError(f"batch is {whole['batch']!r}; allowed: whole numbers up to {MOST_REQUESTS}")
        if bad := [key for key in _FLAGS if whole[key] not in (0, 1)]:
            raise ValueError(f"{bad[0]} is {whole[bad[0]]!r}; allowed: 0, 1")
        for key in _UNREAD[whole["direction"]]:
            if whole[key] != _DEFAULTS[key]:
                raise ValueError(f"{key} is {whole[key]!r}; allowed for {whole['direction']}: {_DEFAULTS[key]!r}")
        if whole["ragged"] and whole["bias"] == "elementwise":
            raise ValueError("an elementwise bias is one matrix of equal requests; allowed: ragged 0")
        if whole["direction"] == "append" and whole["seqlen_q"] * (1 + whole["ragged"]) > whole["seqlen_k"]:
            raise ValueError(f"seqlen_q is {whole['seqlen_q']}; allowed: rows that stand among seqlen_k")

    def problem(self, record: Record) -> AttentionProblem | AppendProblem:
        """The problem of dense tensors, heads inside of rows."""
        return problem_of(record)

    def record_of(self, problem: object) -> Record | None:
        """See :func:`kernelwright.tile_engine.operations.attention.records.record_of`."""
        record = record_of(problem)
        return None if record is None else self.read(record)

    def origin(self, record: Record) -> tuple[str, str]:
        """Origin by heads and their sizes, whatever the lengths."""
        heads = tuple(record[name] for name in ("nhead_q", "nhead_k", "hdim_q", "hdim_v"))
        return attention_origins().get(heads, ("", ""))

    def with_value(self, problem: Any, value: int) -> Any:
        """The problem with a number of splits of the keys, for forward."""
        opened = isinstance(problem, AttentionProblem) and problem.num_splits == 0
        return dataclasses.replace(problem, num_splits=value) if opened else problem

    def operands(self, record: Record, seed: int) -> AttentionOperands | AppendOperands:
        """Multiples of 1/4 from -1 to 1."""
        kind = AppendOperands if record["direction"] == "append" else AttentionOperands
        return kind(record, seed)

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Callable[[], object]:
        """A bound plan."""
        assert isinstance(plan, AttentionPlan | AppendPlan)
        reads, writes = names_of(plan.problem)
        named: dict[str, Any] = dict(zip((*reads, *writes), (*operands.inputs, *operands.outs), strict=True))
        return plan.bind(**named)

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: Sequence[int], outs: Sequence[int], stream: int, workspace: int
    ) -> Callable[[], object]:
        """A call of the plan."""
        assert isinstance(plan, AttentionPlan | AppendPlan)
        reads, writes = names_of(plan.problem)
        named: dict[str, Any] = dict(zip((*reads, *writes), (*inputs, *outs), strict=True))
        return lambda: plan(**named, stream=stream, workspace=workspace)

    def auxiliary(self, spec: Mapping[str, Any]) -> bool:
        """Whether kernels combine splits, sum dO · O, or convert dQ."""
        return spec["family"] in _AUXILIARY

    def flops(self, record: Record) -> int:
        """Multiplications and additions for each query with each key that it sees; for an append, of the rotation."""
        problem = self.problem(record)
        if isinstance(problem, AppendProblem):
            return problem.flops
        requests, window = requests_of(record), (problem.window or (-1, -1))
        pairs = sum(
            visible_pairs(queries, keys, window, problem.mask == "bottom_right")
            for queries, keys in zip(requests.queries, requests.keys, strict=True)
        )
        q, v = record["hdim_q"], record["hdim_v"]
        wide = q + v if record["direction"] == "forward" else 3 * q + 2 * v
        return int(2 * record["nhead_q"] * pairs * wide)

    def bytes_moved(self, record: Record) -> int:
        """Bytes of Q, K, V and O once, for the rows of the requests; backward, those of the gradients too.

        Appended rows are read and written once.
        """
        requests, size = requests_of(record), dtypes.ITEMSIZE[record["dtype"]]
        queries, keys = sum(requests.queries), sum(requests.keys)
        q, k = record["nhead_q"] * record["hdim_q"], record["nhead_k"] * record["hdim_q"]
        o, v = record["nhead_q"] * record["hdim_v"], record["nhead_k"] * record["hdim_v"]
        if record["direction"] == "append":
            return int(2 * size * queries * (k + v + (q if record["rotary_dim"] else 0)))
        lse = 4 * queries * record["nhead_q"]
        if record["direction"] == "backward":
            return int(2 * size * (queries * (q + o) + keys * (k + v)) + lse)
        return int(size * (queries * (q + o) + keys * (k + v)) + (lse if record["lse"] else 0))

"""Inputs of learned selection for forward attention: the numbers of the schema's inputs as C computes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.dispatch import AttentionProblem
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.problems.attention_models import attention_layers
from kernelwright.tile_engine.problems.models import models

_HEADS = ("nhead_q", "nhead_k", "hdim_q", "hdim_v")
# Members of kw_attention_problem, by the schema's input names.
_MEMBERS = {
    "batch": "batch", "heads_q": "heads_q", "heads_kv": "heads_kv", "rows": "max_seqlen_q", "longest": "max_seqlen_k",
    "total_q": "total_q", "total_k": "total_k", "grouped": "group", "hdim_q": "hdim_q", "hdim_v": "hdim_v",
    "left": "window_left", "right": "window_right", "lengths": "kv_lengths", "page_size": "page_size", "bias": "bias",
}  # fmt: skip
_FULL_HDIM = 256  # over the head dimension: workgroups of a split kernel per compute unit of sm_90a


class AttentionLearning:
    """See :class:`kernelwright.tile_engine.operation.Learnable`. Gradients and appending are not learned."""

    def __init__(self, problem_of: Callable[[Record], object]) -> None:
        """``problem_of`` builds a record's problem."""
        self._problem_of = problem_of

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> dict[str, float] | None:
        """The values of ``kw_attention_problem`` and ``kw_attention_traits``."""
        problem = self._problem_of(record)
        if not isinstance(problem, AttentionProblem) or problem.direction != "forward":
            return None
        p = problem.native()
        features = {name: float(getattr(p, member)) for name, member in _MEMBERS.items()}
        return features | {
            "masked": float(problem.mask != "none"),
            "capped": float(problem.soft_cap > 0),
            "size": float(ELEMENT_BYTES[DType(record["dtype"])]),
            "tile_m": float(spec["tile"]["m0"]),
            "tile_n": float(spec["tile"]["n0"]),
            "packs": float(spec["pipeline"] in ("mma", "packed")),
            "blocks": float(_FULL_HDIM // spec["hdim_q"] if spec["pipeline"] == "mma" else 1),
            "any_mask": float(spec["mask"] == "generic"),
            "built_q": float(max(spec["hdim_q"], problem.hdim_q)),
            "built_v": float(max(spec["hdim_v"], problem.hdim_v)),
            "splits": float(max(value, 1)),
        }

    def family(self, record: Record) -> str:
        """Family by heads and their dimensions; a problem of no known layer is its own family."""
        heads = tuple(int(record[name]) for name in _HEADS)
        return _families().get(heads, "x".join(map(str, heads)))


@functools.cache
def _families() -> Mapping[tuple[int, ...], str]:
    """Families by heads; if models of several families have the same heads, the first one."""
    by_heads: dict[tuple[int, ...], str] = {}
    for model in models():
        for one in attention_layers(model):
            by_heads.setdefault((one.q, one.kv, one.hdim_q, one.hdim_v), model.family)
    return by_heads

"""Which of the models' problems a dispatcher serves, and why kernels refuse the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.dispatch import Dispatcher, NoKernelError
from kernelwright.tile_engine.coverage.layer_problem import LayerProblem

_ANOTHER = "the problem's operation is "  # prefix of refusals by kernels of another stage or direction


@dataclass
class Share:
    """The problems of one use.

    :ivar problems: number of problems; ``served`` is the number of those that some kernel serves.
    :ivar reasons: why kernels refused the others, with the number of problems for which at least one kernel gave the
        reason.
    :ivar example: the first problem that is not served, and its layer.
    """

    problems: int = 0
    served: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    example: str = ""

    def as_json(self) -> dict[str, Any]:
        """JSON values; only the reasons for the most problems."""
        numbers = {"problems": self.problems, "served": self.served, "share": round(self.served / self.problems, 4)}
        return {
            **numbers,
            **({"reasons": dict(self.reasons.most_common(5)), "example": self.example} if self.example else {}),
        }


Shares = Mapping[tuple[str, str, str], Share]
"""Shares by operation, use and element type."""


def shares(dispatcher: Dispatcher, problems: Iterable[LayerProblem]) -> Shares:
    """Plan every problem. Nothing is launched, and no GPU is touched."""
    by_use: dict[tuple[str, str, str], Share] = {}
    for one in problems:
        share = by_use.setdefault((one.operation, one.use, one.dtype), Share())
        share.problems += 1
        try:
            dispatcher.plan(one.problem)
        except NoKernelError:
            share.reasons.update(_reasons(dispatcher, one))
            share.example = share.example or f"{one.layer}: {one.problem}"
        else:
            share.served += 1
    return by_use


def _reasons(dispatcher: Dispatcher, one: LayerProblem) -> set[str]:
    """Reasons of the kernels nearest to the problem, in operation, element type and layout; each sentence once."""
    specs = {kernel.identity: kernel.spec for kernel in dispatcher.kernels}
    stage = dispatcher.explain(one.problem).stages[-1]
    near = [kernel for kernel in stage.kernels if specs[kernel.identity]["op"] == one.operation]
    for fields, value in ((("dtype", "dtype_a"), one.dtype), (("layout",), getattr(one.problem, "layout", None))):
        closer = [kernel for kernel in near if value in (specs[kernel.identity].get(field) for field in fields)]
        near = closer or near
    said = {kernel.reason for kernel in near if kernel.reason and not kernel.reason.startswith(_ANOTHER)}
    return said or {stage.reason}


def total(shares: Shares) -> Share:
    """All problems of all uses combined, without reasons."""
    return Share(sum(one.problems for one in shares.values()), sum(one.served for one in shares.values()))

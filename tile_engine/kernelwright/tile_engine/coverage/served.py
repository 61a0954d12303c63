"""Which of models' problems a dispatcher serves, and what the kernels say of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.dispatch import Dispatcher, NoKernelError
from kernelwright.tile_engine.coverage.layer_problem import LayerProblem

_ANOTHER = "the problem's operation is "  # how the refusal of a kernel of another stage or direction begins


@dataclass
class Share:
    """The problems of one use.

    :ivar problems: how many there are; ``served`` how many of them some kernel serves.
    :ivar reasons: why kernels refused the others, and on how many problems at least one kernel said so.
    :ivar example: the first problem that is not served, and its layer.
    """

    problems: int = 0
    served: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    example: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain values; reasons are those of most problems."""
        numbers = {"problems": self.problems, "served": self.served, "share": round(self.served / self.problems, 4)}
        return {
            **numbers,
            **({"reasons": dict(self.reasons.most_common(5)), "example": self.example} if self.example else {}),
        }


Shares = Mapping[tuple[str, str, str], Share]
"""By operation, use and element type."""


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
    """What the kernels nearest to the problem say, each sentence once: of its operation, element type and layout."""
    specs = {kernel.identity: kernel.spec for kernel in dispatcher.kernels}
    stage = dispatcher.explain(one.problem).stages[-1]
    near = [kernel for kernel in stage.kernels if specs[kernel.identity]["op"] == one.operation]
    for fields, value in ((("dtype", "dtype_a"), one.dtype), (("layout",), getattr(one.problem, "layout", None))):
        closer = [kernel for kernel in near if value in (specs[kernel.identity].get(field) for field in fields)]
        near = closer or near
    said = {kernel.reason for kernel in near if kernel.reason and not kernel.reason.startswith(_ANOTHER)}
    return said or {stage.reason}


def total(shares: Shares) -> Share:
    """All problems of all uses together, without reasons."""
    return Share(sum(one.problems for one in shares.values()), sum(one.served for one in shares.values()))

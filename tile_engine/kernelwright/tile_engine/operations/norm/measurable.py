"""Norms as the tile engine measures them: forward, with quantised results, and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.dispatch import OperationPlan, ProblemError
from kernelwright.dispatch.operations.norm import NormPlan, NormProblem
from kernelwright.tile_engine.operation import Measurable, Operands, Record
from kernelwright.tile_engine.operations.norm.operands import NormOperands
from kernelwright.tile_engine.operations.norm.problem_sets import NORM_SETS

_DEFAULTS: dict[str, Any] = {
    "kind": "rms", "direction": "forward", "weight": 1, "bias": 0, "residual": 0, "dtype": "fp32", "dtype_y": "",
}  # fmt: skip


class Norm(Measurable):
    """See :class:`kernelwright.tile_engine.operation.Measurable`. Rows are dense."""

    name = "norm"
    problem_sets = NORM_SETS
    columns: Sequence[str] = (
        *("kind", "direction", "rows", "columns", "weight", "bias", "residual", "dtype", "dtype_y"),
    )

    def read(self, record: Record) -> Record:
        """Keys are the columns; rows and columns have no default. Weight, bias and residual are 0 or 1."""
        if unknown := sorted(set(record) - set(self.columns)):
            raise ValueError(f"a norm has unknown keys {unknown}; allowed: {', '.join(self.columns)}")
        if missing := [key for key in ("rows", "columns") if key not in record]:
            raise ValueError(f"a norm lacks {', '.join(missing)}: {dict(record)!r}")
        whole = {**_DEFAULTS, **record}
        if whole["direction"] not in ("forward", "backward"):
            raise ValueError(f"direction is {whole['direction']!r}; allowed: forward, backward")
        if flags := [key for key in ("weight", "bias", "residual") if whole[key] not in (0, 1)]:
            raise ValueError(f"{', '.join(flags)} is neither 0 nor 1: {dict(record)!r}")
        try:
            whole["dtype_y"] = self.problem(whole).dtype_y
        except (ProblemError, TypeError) as error:
            raise ValueError(f"{dict(record)!r}: {error}") from None
        return {key: whole[key] for key in self.columns}

    def problem(self, record: Record) -> NormProblem:
        """The problem of dense rows."""
        fields = ("kind", "rows", "columns", "dtype", "dtype_y", "weight", "bias", "residual")
        return NormProblem(backward=record["direction"] == "backward", **{name: record[name] for name in fields})

    def record_of(self, problem: object) -> Record | None:
        """The problem with dense rows and weights of its dtype, on which kernels take as long."""
        if not isinstance(problem, NormProblem) or not problem.rows:
            return None
        flags = {name: int(getattr(problem, name)) for name in ("weight", "bias", "residual")}
        fields = ("kind", "rows", "columns", "dtype", "dtype_y")
        direction = "backward" if problem.backward else "forward"
        return self.read({"direction": direction, **{name: getattr(problem, name) for name in fields}, **flags})

    def with_value(self, problem: Any, value: int) -> Any:
        """Return the problem: nothing is open."""
        return problem

    def operands(self, record: Record, seed: int) -> NormOperands:
        """Integers of magnitude up to 4."""
        return NormOperands(self.problem(record), seed)

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Callable[[], object]:
        """A bound plan."""
        assert isinstance(plan, NormPlan) and isinstance(operands, NormOperands)
        arrays: dict[str, Any] = dict(zip(operands.names, (*operands.inputs, *operands.outs), strict=True))
        return plan.bind(**arrays)

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: Sequence[int], outs: Sequence[int], stream: int, workspace: int
    ) -> Callable[[], object]:
        """A call of the plan."""
        assert isinstance(plan, NormPlan)
        names = NormOperands(NormProblem(**_small(plan.problem)), 0).names
        given = dict(zip(names, (*inputs, *outs), strict=True))
        return lambda: plan(**given, stream=stream, workspace=workspace)

    def auxiliary(self, spec: Mapping[str, Any]) -> bool:
        """Return False: a plan has one stage."""
        return False

    def flops(self, record: Record) -> int:
        """Additions and multiplications."""
        return self.problem(record).flops

    def bytes_moved(self, record: Record) -> int:
        """Bytes of the operands, each once."""
        return self.problem(record).bytes_moved


def _small(problem: NormProblem) -> dict[str, Any]:
    """A problem with the same operands and one row of one column."""
    words = ("kind", "dtype", "dtype_y", "dtype_w", "weight", "bias", "residual", "backward")
    return {"rows": 1, "columns": 1, **{name: getattr(problem, name) for name in words}}

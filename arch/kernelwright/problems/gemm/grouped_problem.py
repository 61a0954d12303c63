"""A grouped GEMM problem: products of different shapes in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.problems.errors import ProblemError
from kernelwright.problems.gemm import structs
from kernelwright.problems.gemm.description import GROUPED_PROBLEM, GemmOp
from kernelwright.problems.gemm.problem import GemmProblem, native_types, types_of
from kernelwright.problems.literals import GemmLayout
from kernelwright.problems.reading import shown
from kernelwright.problems.structs import make, values


@dataclass(frozen=True, repr=False)
class GroupedGemmProblem:
    """D = alpha * A·B + beta * C for several groups, each with sizes and matrices of its own.

    :ivar groups: (m, n, k) or (m, n, k, lda, ldb, ldc) of each group, in elements.
    :ivar dtype: element type of A and B, as in :class:`GemmProblem`; all groups share element types and ``layout``.
    :ivar layout: r(ow-major) or c(olumn-major) for A, B and C.
    :ivar problems: the problem of each group.
    :raises ProblemError: for an illegal group; the message says which.
    """

    groups: Sequence[tuple[int, ...]]
    dtype: str = "fp32"
    layout: GemmLayout = "rcr"
    dtype_a: str = ""
    dtype_b: str = ""
    dtype_c: str = ""
    dtype_acc: str = ""
    alpha: float = 1.0
    beta: float = 0.0
    problems: tuple[GemmProblem, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Fill in what follows from other fields; every group is checked as a problem of its own."""
        names = {name: getattr(self, name) for name in ("dtype_a", "dtype_b", "dtype_c", "dtype_acc")}
        common: dict[str, Any] = {
            "dtype": self.dtype,
            "layout": self.layout,
            "alpha": self.alpha,
            "beta": self.beta,
            **names,
        }
        problems = tuple(self._group(number, group, common) for number, group in enumerate(self.groups))
        whole = GemmProblem(0, 0, 0, **common)
        for name in (*names, "dtype", "alpha", "beta"):
            object.__setattr__(self, name, getattr(whole, name))
        object.__setattr__(self, "problems", problems)
        object.__setattr__(self, "groups", tuple((p.m, p.n, p.k, p.lda, p.ldb, p.ldc) for p in problems))

    def _group(self, number: int, group: Sequence[int], common: dict[str, Any]) -> GemmProblem:
        if len(group) not in (3, 6):
            raise ProblemError(f"group {number} is {group!r}; allowed: (m, n, k) or (m, n, k, lda, ldb, ldc)")
        try:
            m, n, k, *leading = group
            given: dict[str, Any] = dict(zip(("lda", "ldb", "ldc"), leading, strict=False))
            return GemmProblem(m, n, k, **given, **common)
        except ProblemError as error:
            raise ProblemError(f"group {number}: {error}") from None

    @property
    def flops(self) -> int:
        """Multiplications and additions of all groups."""
        return sum(problem.flops for problem in self.problems)

    def native(self) -> structs.GroupedGemmProblem:
        """Return the C struct of this problem, which owns its groups."""
        groups = (structs.GemmGroup * len(self.groups))(*(structs.GemmGroup(*group) for group in self.groups))
        listed = {"group_count": len(self.groups), "groups": groups, "alpha": self.alpha, "beta": self.beta}
        given = native_types(self) | listed
        return make(structs.GroupedGemmProblem, GROUPED_PROBLEM, GemmOp.GROUPED_GEMM.number, given)

    @classmethod
    def from_native(cls, address: int) -> GroupedGemmProblem:
        """Read the problem from the C struct at an address."""
        read = values(structs.GroupedGemmProblem.from_address(address), GROUPED_PROBLEM)
        groups = [read["groups"][index] for index in range(read["group_count"])]
        leading = [(g.m, g.n, g.k, g.lda, g.ldb, g.ldc) for g in groups]
        return cls(leading, **types_of(read), alpha=read["alpha"], beta=read["beta"])

    def __repr__(self) -> str:
        """Return the constructor call, without fields that have their defaults; many groups are summarised."""
        return shown(self) if len(self.groups) <= 4 else f"<GroupedGemmProblem: {self}>"

    def __str__(self) -> str:
        """E.g. ``grouped gemm bf16 rcr of 2 groups: 512x512x512, 64x512x512``."""
        shown = ", ".join(f"{m}x{n}x{k}" for m, n, k, *_ in self.groups[:4]) + (", …" if len(self.groups) > 4 else "")
        signature = " ".join(str(GemmProblem(0, 0, 0, **self._common())).split()[1:3])
        count = f"{len(self.groups)} group{'s' if len(self.groups) != 1 else ''}"
        return f"grouped gemm {signature} of {count}" + (f": {shown}" if shown else "")

    def _common(self) -> dict[str, Any]:
        names = ("dtype_a", "dtype_b", "dtype_c", "dtype_acc", "layout")
        return {name: getattr(self, name) for name in names}

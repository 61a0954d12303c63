"""Runs a grouped kernel on lists of cases, each group checked as a product of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gemm.correctness.bench import Bench
from gemm.correctness.cases import Case, random_cases
from gemm.correctness.guarded import Block, fill, scratch
from kernelwright.dispatch import GroupedGemmProblem


def random_groups(count: int, *, seed: int = 0, largest: int = 9, **options: Any) -> Iterator[list[Case]]:
    """``count`` lists of 0 to ``largest`` cases; ``options`` are those of :func:`random_cases`.

    Alpha and beta are the first case's for all, as is whether operands are whole.
    """
    rng = np.random.default_rng(seed)
    cases = random_cases(count * largest, seed=seed, **options)
    for _ in range(count):
        group = [next(cases) for _ in range(int(rng.integers(0, largest + 1)))]
        yield [replace(case, alpha=group[0].alpha, beta=group[0].beta, whole=group[0].whole) for case in group]


class GroupedBench(Bench):
    """One grouped kernel."""

    def groups(self, cases: Sequence[Case]) -> list[Case]:
        """The cases without what groups do not have."""
        return [replace(self.fitted(case), c_is_d=False) for case in cases]

    def grouped_problem(self, cases: Sequence[Case]) -> GroupedGemmProblem:
        """The fitted cases as the dispatcher is asked."""
        problems = [self.problem(case) for case in cases]
        first = cases[0] if cases else Case(0, 0, 0)
        return GroupedGemmProblem(
            [(p.m, p.n, p.k, p.lda or 1, p.ldb or 1, p.ldc or 1) for p in problems], layout=self.layout,
            alpha=first.alpha, beta=first.beta, **{f"dtype_{x}": name for x, name in self.names.items()},
        )  # fmt: skip

    def grouped_refusal(self, cases: Sequence[Case]) -> str | None:
        """Why the kernel does not serve the fitted cases; None if it does."""
        own = self.ranked(self.grouped_problem(cases))
        return None if own.supported else own.reason

    def check_groups(self, cases: Sequence[Case], repeats: int = 3) -> None:
        """Run the fitted cases in one launch and check each. AssertionError names the case and what is wrong."""
        operands: list[dict[str, Block]] = []
        for case in cases:
            rng = np.random.default_rng([case.seed, case.m, case.n, case.k])
            blocks = {x: self._block(x, case) for x in "abc"}
            for x in "abc" if case.beta else "ab":
                fill(blocks[x], rng, case.whole)
            operands.append(blocks)
        results = [self._launch_groups(cases, operands) for _ in range(repeats)]
        for number, (case, blocks) in enumerate(zip(cases, operands, strict=True)):
            try:
                inputs = self._inputs(case, blocks["a"], blocks["b"], blocks["c"], [])
                self._check_result(case, inputs, results[0][number].values, np.random.default_rng(case.seed))
                for result in results:
                    result[number].assert_untouched_around()
                    same = result[number].values.tobytes() == results[0][number].values.tobytes()
                    assert same, "repeats differ"
            except AssertionError as wrong:
                raise AssertionError(f"{self.kernel.name}, group {number} of {len(cases)}, {case}: {wrong}") from None

    def _launch_groups(self, cases: Sequence[Case], operands: Sequence[dict[str, Block]]) -> list[Block]:
        """One launch into poisoned memory; operands must be as they were."""
        results = [self._block("c", case) for case in cases]
        plan = self.dispatcher.plan_grouped(self.grouped_problem(cases))
        assert plan.kernel.identity == self.kernel.identity
        workspace = scratch(plan.workspace_bytes) if plan.workspace_bytes else None
        read = [blocks[x] for blocks in operands for x in "abc"]
        before = [block.raw.copy() for block in read]
        every = [*read, *results, *([workspace] if workspace else [])]
        places = {id(block): self.memory.put(block) for block in every}
        lists = {x: [places[id(blocks[x])] for blocks in operands] for x in "abc"}
        plan(
            lists["a"], lists["b"], [places[id(result)] for result in results],
            lists["c"] if cases and cases[0].beta else None, workspace=places[id(workspace)] if workspace else None,
        )  # fmt: skip
        for block in every:
            self.memory.get(block)
        for block, raw in zip(read, before, strict=True):
            assert np.array_equal(block.raw, raw), f"{self.kernel.name}: an operand was written"
        if workspace:
            workspace.assert_untouched_around()
        return results

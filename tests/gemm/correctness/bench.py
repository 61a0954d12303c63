"""Runs one kernel of a library on cases and checks every element of the result and everything around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gemm.correctness.cases import Case
from gemm.correctness.guarded import Block, fill, scratch
from gemm.correctness.memory import Host, Memory
from gemm.correctness.reference import (
    ACTIVATIONS,
    PIECEWISE_LINEAR,
    Array,
    Inputs,
    allowed_error,
    error,
    exact,
    plain,
    rounded,
    scale,
)
from kernelwright.dispatch import (
    Device,
    Dispatcher,
    GemmProblem,
    GroupedGemmProblem,
    KernelEntry,
    KernelLibrary,
    RankedKernel,
    ShuffledB,
    dtypes,
)

MOST_D = 4  # KW_MAX_D
LEAST = 16  # rows and columns of reference runs: the largest of few errors may be small by luck


class Bench:
    """One kernel. ``reference`` is a run in the kernel's own precision, e.g. of a GPU's own library.

    ``memory`` is the device's, the host's unless given.
    """

    def __init__(
        self,
        library: KernelLibrary,
        kernel: KernelEntry,
        device: Device | str = "cpu",
        memory: Memory | None = None,
        reference: Callable[[Inputs], Array] = plain,
    ) -> None:
        self.kernel, self.spec = kernel, kernel.spec
        self.dispatcher = Dispatcher(library, device=device, selection=kernel.identity)
        self.memory = memory or Host()
        self.reference = reference
        self.layout = str(self.spec["layout"])
        self.names = {x: str(self.spec[f"dtype_{x}"]) for x in ("a", "b", "c", "acc")}
        fnuz = library.fp8_fnuz
        self.types = {x: dtypes.numpy_dtype(name, fnuz) for x, name in self.names.items()}
        fixed = (
            int(self.spec.get("num_d", 0)),
            str(self.spec.get("d_op", "add")),
            str(self.spec.get("activation", "none")),
        )
        self.epilogue = None if fixed[2] == "any" else fixed
        self.b_format = self._format() if self.spec.get("preshuffle") else 0

    def _format(self) -> int:
        tile = self.spec["tile"]
        some = Block((tile["k"], tile["n"]), (tile["n"], 1), self.types["b"])
        return self._shuffle(Case(tile["m"], tile["n"], tile["k"]), some.values).operand.b_format

    def _shuffle(self, case: Case, b: Array) -> ShuffledB:
        fields = dict(zip(("num_d", "d_op", "activation"), self._epilogue(case), strict=True))
        return self.dispatcher.shuffle_b(b, m=case.m, dtype_c=self.names["c"], layout=self.layout, **fields)

    def _epilogue(self, case: Case) -> tuple[int, str, str]:
        """How many D, how they are combined, and the activation: the kernel's, else the case's, else drawn for it."""
        if self.epilogue is not None:
            return self.epilogue
        if case.epilogue is not None:
            return case.epilogue
        rng = np.random.default_rng([case.seed, case.m, case.n, case.k])
        activation = list(ACTIVATIONS)[rng.integers(len(ACTIVATIONS))]
        return int(rng.integers(MOST_D + 1)), ("add", "multiply")[rng.integers(2)], activation

    def fitted(self, case: Case) -> Case:
        """The case without what the kernel's variant does not have."""
        changes: dict[str, Any] = {} if self.epilogue else {"epilogue": self._epilogue(case)}
        if not self.spec.get("batched"):
            changes.update(batch=1, batch_gap=0, shared="")
        if not self.spec.get("split_k") and case.split_k > 1:
            changes.update(split_k=1)
        if self.names["acc"] == "int32" and case.alpha != int(case.alpha):
            changes.update(alpha=1.0)
        if not self._epilogue(case)[0]:
            changes.update(bias=False)
        if self.spec.get("preshuffle"):  # that copies B anyway
            changes.update(gaps=(case.gaps[0], 0, *case.gaps[2:]), batch=1, batch_gap=0, shared="")
        return replace(case, **changes)

    def problem(self, case: Case) -> GemmProblem:
        """The fitted case as the dispatcher is asked."""
        return GemmProblem(
            case.m, case.n, case.k, layout=self.layout, alpha=case.alpha, beta=case.beta, split_k=case.split_k,
            **{f"dtype_{x}": name for x, name in self.names.items()},
            **{f"ld{x}": self._leading(x, case) for x in "abc"}, **self._variant(case),
        )  # fmt: skip

    def _variant(self, case: Case) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        num_d, d_op, activation = self._epilogue(case)
        if case.batch != 1:
            fields.update({"batch": case.batch}, **{f"stride_{x}": self._strides(x, case)[0] for x in "abc"})
        if num_d:
            strides = [self._d_strides(case, number) for number in range(num_d)]
            fields.update(num_d=num_d, d_op=d_op, ld_multi_d=tuple(row for _, row, _ in strides))
            if case.batch != 1:
                fields.update(stride_multi_d=tuple(batch for batch, _, _ in strides))
        if activation != "none":
            fields.update(activation=activation)
        if self.b_format:
            fields.update(b_format=self.b_format)
        return fields

    def _shape(self, x: str, case: Case) -> tuple[int, int]:
        return {"a": (case.m, case.k), "b": (case.k, case.n), "c": (case.m, case.n)}[x]

    def _lines(self, x: str, case: Case) -> tuple[int, int]:
        rows, columns = self._shape(x, case)
        return (rows, columns) if self.layout["abc".index(x)] == "r" else (columns, rows)

    def _leading(self, x: str, case: Case) -> int:
        return max(1, self._lines(x, case)[1] + case.gaps["abc".index(x)])

    def _strides(self, x: str, case: Case) -> tuple[int, int, int]:
        """Elements between batches, rows and columns."""
        leading = self._leading(x, case)
        batch = 0 if x == case.shared else self._lines(x, case)[0] * leading + case.batch_gap
        return (batch, leading, 1) if self.layout["abc".index(x)] == "r" else (batch, 1, leading)

    def _d_strides(self, case: Case, number: int) -> tuple[int, int, int]:
        if case.bias and number == 0:
            return 0, 0, 1
        leading = max(1, case.n + case.gaps[3])
        return case.m * leading + case.batch_gap, leading, 1

    def ranked(self, problem: GemmProblem | GroupedGemmProblem) -> RankedKernel:
        """What the dispatcher says of the kernel."""
        (own,) = (each for each in self.dispatcher.explain(problem) if each.identity == self.kernel.identity)
        return own

    def refusal(self, case: Case) -> str | None:
        """Why the kernel does not serve the fitted case; None if it does."""
        own = self.ranked(self.problem(case))
        return None if own.supported else own.reason

    def check(self, case: Case, repeats: int = 3) -> None:
        """Run the fitted case and check it. AssertionError names the case and what is wrong."""
        rng = np.random.default_rng([case.seed, case.m, case.n, case.k])
        a, b, c = (self._block(x, case) for x in "abc")
        num_d, d_op, _ = self._epilogue(case)
        ds = [
            Block((case.batch, case.m, case.n), self._d_strides(case, number), self.types["c"])
            for number in range(num_d)
        ]
        for block in (a, b, *([c] if case.beta else []), *ds):
            is_factor = d_op == "multiply" and any(block is d for d in ds)
            fill(block, rng, case.whole, 2 if is_factor else 4)
        inputs = self._inputs(case, a, b, c, ds)
        used = self._shuffled(case, b) if self.b_format else b
        results = [self._launch(case, a, used, c, ds) for _ in range(repeats)]
        try:
            self._check_result(case, inputs, results[0].values, rng)
            for result in results:
                result.assert_untouched_around()
                assert result.values.tobytes() == results[0].values.tobytes(), "repeats differ"
        except AssertionError as wrong:
            raise AssertionError(f"{self.kernel.name}, {case}: {wrong}") from None

    def _shuffled(self, case: Case, b: Block) -> Block:
        """B as the kernel reads it, between guards of its own."""
        data = np.asarray(self._shuffle(case, b.values[0]).data)
        block = Block(data.shape, (1,), data.dtype)
        block.values[...] = data
        return block

    def _block(self, x: str, case: Case) -> Block:
        return Block((case.batch, *self._shape(x, case)), self._strides(x, case), self.types[x])

    def _inputs(self, case: Case, a: Block, b: Block, c: Block, ds: list[Block]) -> Inputs:
        return Inputs(
            a.values, b.values, c.values if case.beta else None, tuple(d.values for d in ds),
            case.alpha, case.beta, *self._epilogue(case)[1:], self.types["c"],
        )  # fmt: skip

    def _launch(self, case: Case, a: Block, b: Block, c: Block, ds: list[Block]) -> Block:
        """One launch into poisoned memory; operands must be as they were."""
        result = self._block("c", case)
        if case.c_is_d:
            result.values[...] = c.values
        plan = self.dispatcher.plan(self.problem(case))
        assert plan.kernel.identity == self.kernel.identity
        workspace = scratch(plan.workspace_bytes) if plan.workspace_bytes else None
        read = [a, b, *([c] if case.beta and not case.c_is_d else []), *ds]
        before = [block.raw.copy() for block in read]
        put = self.memory.put
        places = {id(block): put(block) for block in (*read, result, *([workspace] if workspace else []))}
        old = places[id(result if case.c_is_d else c)] if case.beta else None
        more: dict[str, Any] = {"ds": [places[id(d)] for d in ds]} if ds else {}
        plan(
            places[id(a)], places[id(b)], old, out=places[id(result)],
            workspace=places[id(workspace)] if workspace else None, **more,
        )  # fmt: skip
        for block in (*read, result, *([workspace] if workspace else [])):
            self.memory.get(block)
        for block, raw in zip(read, before, strict=True):
            assert np.array_equal(block.raw, raw), f"{self.kernel.name}, {case}: an operand was written"
        if workspace:
            workspace.assert_untouched_around()
        return result

    def _check_result(self, case: Case, inputs: Inputs, result: Array, rng: np.random.Generator) -> None:
        expected = exact(inputs)
        if inputs.integers or (case.whole and inputs.activation in PIECEWISE_LINEAR):
            wanted = rounded(expected, inputs.dtype).astype(np.float64)
            wrong = np.argwhere(~(result.astype(np.float64) == wanted))
            assert not len(wrong), (
                f"{len(wrong)} of {result.size} elements are wrong, first {tuple(map(int, wrong[0]))}: "
                f"{result[tuple(wrong[0])]} instead of {wanted[tuple(wrong[0])]}"
            )
            return
        off_by = error(result, expected, scale(inputs))
        allowed = allowed_error([inputs, *self._more(case, inputs, rng)], self.reference)
        assert off_by <= allowed, f"the error is {off_by:.3g} of the size of its terms; allowed: {allowed:.3g}"

    def _more(self, case: Case, inputs: Inputs, rng: np.random.Generator) -> list[Inputs]:
        """Another sample of the same distribution for reference runs, where the case itself has few elements."""
        if case.m >= LEAST and case.n >= LEAST:
            return []
        epilogue = self._epilogue(case)
        larger = replace(
            case, m=LEAST, n=LEAST, batch=1, batch_gap=0, shared="", bias=False, c_is_d=False, gaps=(0, 0, 0, 0),
            epilogue=epilogue,
        )  # fmt: skip
        a, b, c = (self._block(x, larger) for x in "abc")
        ds = [Block((1, LEAST, LEAST), self._d_strides(larger, 1), self.types["c"]) for _ in range(epilogue[0])]
        for block in (a, b, c, *ds):
            fill(block, rng, case.whole)
        return [self._inputs(larger, a, b, c, ds)]

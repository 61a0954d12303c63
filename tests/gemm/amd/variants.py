"""Kernels of any variant in the simulator: their problems, operands in guarded memory, three launches, a reference."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemm.amd.operands import element_type
from gemm.amd.raw import RawKernel
from gemm.correctness import reference
from gemm.correctness.guarded import Block, fill, scratch
from kernelwright.dispatch import KernelEntry, KernelLibrary, dtypes
from kernelwright.problems.gemm import structs
from kernelwright.problems.gemm.description import DOp, GemmOp
from kernelwright.problems.shared import Activation


@dataclass(frozen=True)
class Case:
    """A problem. ``gap``: elements behind each row. ``shared``: which of A and B all of a batch share. ``bias``: D0 is
    one row. ``whole``: small whole numbers. ``groups``: more shapes of a grouped problem. ``num_d``, ``d_op``,
    ``activation``: what a kernel of any epilogue is asked for."""

    m: int
    n: int
    k: int
    gap: int = 0
    whole: bool = True
    alpha: float = 1.0
    beta: float = 0.0
    split_k: int = 1
    batch: int = 1
    shared: str = ""
    bias: bool = False
    num_d: int = 0
    d_op: str = "add"
    activation: str = "none"
    groups: tuple[tuple[int, int, int], ...] = ()

    def __str__(self) -> str:
        """For the names of tests: what is not as usual."""
        text = f"{self.m}x{self.n}x{self.k}"
        shown = ("gap", "whole", "alpha", "beta", "split_k", "batch", "shared", "bias", "num_d", "d_op", "activation")
        for name in shown:
            if getattr(self, name) != getattr(type(self), name):
                text += f",{name}={getattr(self, name)}"
        return text + (f",{len(self.groups) + 1} groups" if self.groups else "")


class Operands:
    """A, B, C, D and the D tensors of one product or batch of them."""

    def __init__(self, bench: Bench, case: Case, rng: np.random.Generator) -> None:
        extents = {"a": (case.m, case.k), "b": (case.k, case.n), "c": (case.m, case.n)}
        self.leading, self.stride, blocks = {}, {}, {}
        for x, (rows, columns) in extents.items():
            by_row = bench.layout["abc".index(x)] == "r"
            lines, line = (rows, columns) if by_row else (columns, rows)
            self.leading[x] = line + case.gap
            self.stride[x] = 0 if case.shared == x or case.batch == 1 else lines * self.leading[x] + 2 * case.gap
            steps = (self.leading[x], 1) if by_row else (1, self.leading[x])
            blocks[x] = ((case.batch, rows, columns), (self.stride[x], *steps), bench.types[x])
        self.a, self.b, self.c, self.d = (Block(*blocks[x]) for x in ("a", "b", "c", "c"))
        self.ld_d = [0 if case.bias and not i else case.n + case.gap + i for i in range(case.num_d)]
        self.stride_d = [0 if case.batch == 1 or not ld else case.m * ld for ld in self.ld_d]
        shape = (case.batch, case.m, case.n)
        self.ds = [
            Block(shape, (step, ld, 1), bench.types["c"]) for step, ld in zip(self.stride_d, self.ld_d, strict=True)
        ]
        for block in (self.a, self.b, *([self.c] if case.beta else []), *self.ds):
            fill(block, rng, case.whole, 2 if case.d_op == "multiply" else 4)

    @property
    def read(self) -> list[Block]:
        """What a kernel must not write."""
        return [self.a, self.b, self.c, *self.ds]

    def inputs(self, bench: Bench, case: Case) -> reference.Inputs:
        """As the reference takes them."""
        c = self.c.values if case.beta else None
        return reference.Inputs(
            self.a.values, self.b.values, c, tuple(d.values for d in self.ds), case.alpha, case.beta,
            case.d_op, case.activation, bench.types["c"],
        )  # fmt: skip


class Bench:
    """One kernel of a library."""

    def __init__(self, library: KernelLibrary, entry: KernelEntry) -> None:
        self.kernel, self.spec, self.name = RawKernel(library, entry), entry.spec, entry.name
        self.layout = str(self.spec["layout"])
        self.types = {x: element_type(str(self.spec[f"dtype_{x}"]), library.arch) for x in "abc"}
        self._built_in = {name: self.spec.get(name, getattr(Case, name)) for name in ("num_d", "d_op", "activation")}
        self.grouped = bool(self.spec.get("grouped"))

    def ready(self, case: Case) -> Case:
        """The case with the kernel's own epilogue, unless that is any."""
        return case if self._built_in["activation"] == "any" else replace(case, **self._built_in)

    def operands(self, case: Case) -> Operands:
        """New ones for a case."""
        case = self.ready(case)
        return Operands(self, case, np.random.default_rng([case.m, case.n, case.k]))

    def run(self, case: Case, repeats: int | None = None) -> bytes:
        """Launch the case into poisoned memory; check results and everything around them. Returns D's bytes.

        Three times unless told otherwise; once where sums are exact, so that any other bits are wrong.
        """
        case = self.ready(case)
        repeats = repeats or (1 if case.whole else 3)
        rng = np.random.default_rng([case.m, case.n, case.k])
        shapes = [case, *(replace(case, m=m, n=n, k=k) for m, n, k in case.groups)]
        operands = [Operands(self, shape, rng) for shape in shapes]
        results = [self._launch(shapes, operands) for _ in range(repeats)]
        assert all(result == results[0] for result in results), "repeats differ"
        for shape, each in zip(shapes, operands, strict=True):
            self._check_result(shape, each)
        return results[0]

    def _launch(self, shapes: list[Case], operands: list[Operands]) -> bytes:
        before = [block.raw.copy() for each in operands for block in each.read]
        for each in operands:
            each.d.clear()
        (self._launch_grouped if self.grouped else self._launch_one)(shapes, operands)
        for block, raw in zip((block for each in operands for block in each.read), before, strict=True):
            assert np.array_equal(block.raw, raw), "an operand was written"
        for each in operands:
            each.d.assert_untouched_around()
        return b"".join(each.d.values.tobytes() for each in operands)

    def _launch_one(self, shapes: list[Case], operands: list[Operands]) -> None:
        (case,), (x,) = shapes, operands
        problem, b = self.problem(case, x), x.b
        if self.spec.get("preshuffle"):
            b = self.kernel.shuffled(problem, x.b)
            problem.b_format = self.b_format()
        room = scratch(self.kernel.workspace(problem))
        args = structs.GemmArgs(ctypes.sizeof(structs.GemmArgs), 0, x.a.address, b.address, x.c.address, x.d.address)
        args.multi_d[: case.num_d] = [d.address for d in x.ds]
        read = [x.a, b, *([x.c] if case.beta else []), *x.ds]
        self.kernel.launch(self.kernel.plan(problem), args, read, [x.d], room)
        room.assert_untouched_around()

    def problem(self, case: Case, x: Operands) -> Any:
        """``kw_gemm_problem`` of a case."""
        case = self.ready(case)
        made = structs.GemmProblem(ctypes.sizeof(structs.GemmProblem), GemmOp.GEMM.number, *self._kind(), case.split_k)
        made.m, made.n, made.k = case.m, case.n, case.k
        made.lda, made.ldb, made.ldc = (x.leading[name] for name in "abc")
        made.stride_a, made.stride_b, made.stride_c = (x.stride[name] for name in "abc")
        made.alpha, made.beta, made.batch, made.num_d = case.alpha, case.beta, case.batch, case.num_d
        made.d_op, made.activation = DOp.codes[case.d_op], Activation.codes[case.activation]
        made.ld_multi_d[: case.num_d] = x.ld_d
        made.stride_multi_d[: case.num_d] = x.stride_d
        return made

    def b_format(self) -> int:
        """``kw_gemm_traits.b_format``."""
        return int(self.kernel.traits.b_format)

    def _kind(self) -> list[int]:
        types = [dtypes.CODES[str(self.spec[f"dtype_{x}"])] for x in ("a", "b", "c", "acc")]
        return [*types, *(int(letter == "c") for letter in self.layout)]

    def _launch_grouped(self, shapes: list[Case], operands: list[Operands]) -> None:
        groups = (structs.GemmGroup * len(shapes))(
            *(structs.GemmGroup(case.m, case.n, case.k, *(x.leading[name] for name in "abc"))
              for case, x in zip(shapes, operands, strict=True))
        )  # fmt: skip
        size = ctypes.sizeof(structs.GroupedGemmProblem)
        case = shapes[0]
        problem = structs.GroupedGemmProblem(
            size, GemmOp.GROUPED_GEMM.number, *self._kind(), 0, len(shapes), groups, case.alpha
        )
        problem.beta = case.beta
        assert self.kernel.workspace(problem) == 0
        plan = self.kernel.plan(problem)
        lists = [
            (ctypes.c_void_p * len(shapes))(*(getattr(x, name).address for x in operands))
            for name in ("a", "b", "c", "d")
        ]
        args = structs.GroupedGemmArgs(ctypes.sizeof(structs.GroupedGemmArgs), 0, len(shapes), groups, *lists)
        read = [block for x in operands for block in (x.a, x.b, *([x.c] if case.beta else []))]
        self.kernel.launch(plan, args, read, [x.d for x in operands])

    def _check_result(self, case: Case, x: Operands) -> None:
        inputs, actual = x.inputs(self, case), x.d.values
        wanted = reference.exact(inputs)
        if inputs.integers or (case.whole and case.activation in reference.PIECEWISE_LINEAR):
            rounded = reference.rounded(wanted, inputs.dtype).astype(np.float64)
            wrong = np.argwhere(~(actual.astype(np.float64) == rounded))
            assert not len(wrong), f"{len(wrong)} of {actual.size} elements are wrong, first {wrong[0]}"
            return
        error = reference.error(actual, wanted, reference.scale(inputs))
        allowed = reference.allowed_error([inputs])
        assert error <= allowed, f"the error is {error:.3g} of the size of the terms, {allowed:.3g} are allowed"


def is_plain(entry: KernelEntry) -> bool:
    """Does the kernel have no variant?"""
    young = ("stream_k", "num_d", "activation", "batched", "grouped", "preshuffle", "persistent")
    return not any(entry.spec.get(name) not in (None, False, 0, "none") for name in young)

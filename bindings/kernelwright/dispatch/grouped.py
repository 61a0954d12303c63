"""Products of different shapes in one launch: the problem and its plan."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.dispatch import dtypes, native, workspace
from kernelwright.dispatch.arrays import Operand, operand
from kernelwright.dispatch.device import Device
from kernelwright.dispatch.errors import ArrayError, ProblemError
from kernelwright.dispatch.manifest import KernelEntry
from kernelwright.dispatch.matching import check_format, check_operand, overlaps, span
from kernelwright.dispatch.plan import Selection
from kernelwright.dispatch.problem import GemmProblem
from kernelwright.dispatch.simulated import SimulatedLaunch


@dataclass(frozen=True)
class GroupedGemmProblem:
    """D = alpha * A·B + beta * C for every group, each with its own m, n and k and matrices.

    A group is (m, n, k) or (m, n, k, lda, ldb, ldc). All share dtypes and ``layout``, which are as those of
    :class:`GemmProblem`. Raises ProblemError.
    """

    groups: Sequence[tuple[int, ...]]
    dtype: str = "fp32"
    layout: str = "rcr"
    dtype_a: str = ""
    dtype_b: str = ""
    dtype_c: str = ""
    dtype_acc: str = ""
    alpha: float = 1.0
    beta: float = 0.0
    problems: tuple[GemmProblem, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Fill in what follows from other fields; every group is checked as the problem that it is."""
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

    def native(self) -> native.GroupedGemmProblem:
        """The C struct of this problem; it owns its groups."""
        layouts = [0 if letter == "r" else 1 for letter in self.layout]
        types = [dtypes.CODES[name] for name in (self.dtype_a, self.dtype_b, self.dtype_c, self.dtype_acc)]
        groups = (native.GemmGroup * len(self.groups))(*(native.GemmGroup(*group) for group in self.groups))
        return native.GroupedGemmProblem(
            native.sizeof(native.GroupedGemmProblem), native.OP_GROUPED_GEMM, *types, *layouts, 0,
            len(self.groups), groups, self.alpha, self.beta,
        )  # fmt: skip

    def __str__(self) -> str:
        """E.g. ``grouped gemm bf16 rcr of 2 groups: 512x512x512, 64x512x512``."""
        shown = ", ".join(f"{m}x{n}x{k}" for m, n, k, *_ in self.groups[:4]) + (", …" if len(self.groups) > 4 else "")
        signature = " ".join(str(GemmProblem(0, 0, 0, **self._common())).split()[1:3])
        count = f"{len(self.groups)} group{'s' if len(self.groups) != 1 else ''}"
        return f"grouped gemm {signature} of {count}" + (f": {shown}" if shown else "")

    def _common(self) -> dict[str, Any]:
        names = ("dtype_a", "dtype_b", "dtype_c", "dtype_acc", "layout")
        return {name: getattr(self, name) for name in names}


class GroupedPlan:
    """Calls its kernel with one array, or address, per group and operand. Threads may share it.

    ``plan(a, b, outs)`` with lists of NumPy arrays, torch tensors, … of exactly the groups' shapes, dtypes and strides;
    ``cs`` is needed when beta is not 0. Lists of integers are addresses, of which only null is checked.
    """

    __slots__ = (
        "__weakref__", "_groups", "_handle", "_keep", "_launch", "_local", "_memory", "_ordinal", "device", "problem",
        "selection", "workspace_bytes",
    )  # fmt: skip

    def __init__(
        self, problem: GroupedGemmProblem, selection: Selection, handle: int, workspace_bytes: int, device: Device,
        keep: object, library: Any,
    ) -> None:  # fmt: skip
        """Made by :meth:`Dispatcher.plan_grouped`."""
        self.problem, self.selection, self.workspace_bytes = problem, selection, workspace_bytes
        self.device, self._memory, self._ordinal = device.name, device.memory, device.ordinal
        self._handle, self._keep = ctypes.c_void_p(handle), keep
        self._groups = problem.native().groups
        self._launch: Callable[[Any, Any, Any], int] = native.library().kw_plan_launch
        if device.simulated:
            self._launch = SimulatedLaunch(device, self._memory_of, library)
        self._local = threading.local()

    @property
    def kernel(self) -> KernelEntry:
        """The kernel that runs."""
        return self.selection.kernel

    def __repr__(self) -> str:
        """Problem and kernel."""
        return f"<GroupedPlan {self.problem} with {self.kernel.name}>"

    def __call__(
        self, a: Sequence[Any], b: Sequence[Any], outs: Sequence[Any], cs: Sequence[Any] | None = None, *,
        stream: int | None = None, workspace: int | None = None,
    ) -> Sequence[Any]:  # fmt: skip
        """Run and return ``outs``. Raises ArrayError before, LaunchError after the launch."""
        lists = {"a": a, "b": b, "out": outs, **({"c": cs} if cs is not None else {})}
        for name, arrays in lists.items():
            if len(arrays) != len(self.problem.groups):
                raise ArrayError(
                    f"{name} has {len(arrays)} matrices; allowed: {len(self.problem.groups)}, one per group"
                )
        if all(type(array) is int for arrays in lists.values() for array in arrays):
            self._run({name: list(arrays) for name, arrays in lists.items()}, "raw", stream or 0, workspace)
            return outs
        views = {
            name: [self._view(name, number, array, stream) for number, array in enumerate(arrays)]
            for name, arrays in lists.items()
        }
        self.run_views(views, stream, workspace)
        return outs

    def run_views(self, views: dict[str, list[Operand]], stream: int | None, workspace_at: int | None = None) -> None:
        """Run on operands that were matched against this plan's problem already."""
        _check_memory(views)
        family = views["a"][0].family if views["a"] else "raw"
        if stream is None:
            current = workspace.stream_source(family, self._memory)
            stream = current() if current is not None else 0
        pointers = {name: [view.pointer for view in found] for name, found in views.items()}
        self._run(pointers, family, stream, workspace_at)

    def _view(self, name: str, number: int, array: Any, stream: int | None) -> Operand:
        view = operand(array, f"{name}[{number}]", stream)
        check_operand(f"{name}[{number}]", name, view, self.problem.problems[number], self._memory)
        check_format(f"{name}[{number}]", view, self.kernel.arch)
        return view

    def _run(self, pointers: dict[str, list[int]], family: str, stream: int, scratch: int | None) -> None:
        count = len(self.problem.groups)
        lists = {name: (ctypes.c_void_p * count)(*found) for name, found in pointers.items()}
        if self.workspace_bytes and scratch is None:
            scratch = self._scratch(family, stream)
        args = native.GroupedGemmArgs(
            native.sizeof(native.GroupedGemmArgs), 0, count, self._groups, lists["a"], lists["b"], lists.get("c"),
            lists["out"],
        )  # fmt: skip
        launch = native.Launch(native.sizeof(native.Launch), self._ordinal, stream, scratch, self.workspace_bytes)
        native.check(self._launch(self._handle, native.byref(launch), native.byref(args)), ArrayError)

    def _scratch(self, family: str, stream: int) -> int:
        kept: dict[int, tuple[int, Any]] = self._local.__dict__.setdefault("workspaces", {})
        if stream not in kept:
            kept[stream] = workspace.allocate(self.workspace_bytes, family, self._memory)
        return kept[stream][0]

    def _memory_of(
        self, launch: native.Launch, args: native.GroupedGemmArgs
    ) -> list[tuple[int | None, int, bool, str]]:
        """What a simulated launch may touch: address, bytes, whether it may be written, name."""
        found: list[tuple[int | None, int, bool, str]] = [(launch.workspace, self.workspace_bytes, True, "workspace")]
        for number, problem in enumerate(self.problem.problems):
            a, b, d = problem.spans
            found += [
                (args.a[number], a, False, f"A{number}"),
                (args.b[number], b, False, f"B{number}"),
                (args.d[number], d, True, f"D{number}"),
            ]
            if args.c and args.c[number] != args.d[number]:
                found.append((args.c[number], d, False, f"C{number}"))
        return found


def _check_memory(views: dict[str, list[Operand]]) -> None:
    """Raise ArrayError where a result shares memory with anything but its own C."""
    found = sorted(
        ((*span(view), name, number, view) for name, group in views.items() for number, view in enumerate(group)),
        key=lambda each: each[:2],
    )
    open_: list[tuple[int, int, str, int, Operand]] = []  # what begins before and may reach into the next
    for each in found:
        begin, _, name, number, view = each
        open_ = [other for other in open_ if other[1] > begin]
        for _, _, other_name, other_number, other in open_:
            if "out" not in (name, other_name) or not overlaps(view, other):
                continue
            own = number == other_number and {name, other_name} == {"out", "c"} and view.pointer == other.pointer
            if not own:
                first, second = sorted([f"{name}[{number}]", f"{other_name}[{other_number}]"], reverse=True)
                raise ArrayError(f"{first} shares memory with {second}; pass another out")
        open_.append(each)

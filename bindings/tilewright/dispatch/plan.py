"""A problem with its kernel: called again and again with different memory."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.dispatch import dtypes, native, workspace
from tilewright.dispatch.arrays import Operand, operand
from tilewright.dispatch.device import Device
from tilewright.dispatch.errors import ArchMismatchError, ArrayError
from tilewright.dispatch.looks import Look, look_of
from tilewright.dispatch.manifest import KernelEntry
from tilewright.dispatch.matching import check_memory, is_addressed_by
from tilewright.dispatch.problem import GemmProblem
from tilewright.dispatch.simulated import SimulatedLaunch


@dataclass(frozen=True)
class Selection:
    """The kernel for a problem and, in a few words, why; :meth:`Dispatcher.explain` has the whole ranking."""

    kernel: KernelEntry
    reason: str


class _ThreadState:
    """What one thread reuses between calls: the argument struct and workspaces by stream."""

    __slots__ = ("args", "reference", "workspaces")

    def __init__(self) -> None:
        self.args = native.GemmArgs(native.sizeof(native.GemmArgs), 0)
        self.reference = native.byref(self.args)
        self.workspaces: dict[int, tuple[int, Any]] = {}


class Plan:
    """Calls its kernel with arrays, or with addresses as integers. Threads may share it.

    ``plan(a, b, out=d)`` with NumPy arrays, torch tensors, … of exactly the problem's shapes, dtypes and strides;
    ``plan(a_address, b_address, out=d_address)`` checks nothing but null. ``c`` is needed when beta is not 0; ``out``
    may be ``c`` but must not share memory with ``a`` or ``b``.
    On a GPU the launch is asynchronous, on ``stream`` or the array library's current one.
    """

    __slots__ = (
        "__weakref__", "_bytes", "_handle", "_keep", "_launch", "_local", "_looks", "_memory", "device", "problem",
        "selection", "workspace_bytes",
    )  # fmt: skip

    def __init__(
        self,
        problem: GemmProblem,
        selection: Selection,
        handle: int,
        workspace_bytes: int,
        device: Device,
        keep: object,
        library: Any,
    ) -> None:
        """Made by :meth:`Dispatcher.plan`; ``keep`` owns what the native plan and ``library``'s table refer to."""
        self.problem = problem
        self.selection = selection
        self.workspace_bytes = workspace_bytes
        self.device = device.name
        self._memory = device.memory
        self._handle = ctypes.c_void_p(handle)
        self._keep = keep
        self._launch: Callable[[Any, Any], int] = native.library().tw_plan_launch
        if device.simulated:
            self._launch = SimulatedLaunch(device, problem, workspace_bytes, library)
        self._local = threading.local()
        self._bytes = problem.spans
        self._looks: tuple[Look, str, Callable[[], int] | None] | None = None  # of arrays that passed the checks

    @property
    def kernel(self) -> KernelEntry:
        """The kernel that runs."""
        return self.selection.kernel

    def __repr__(self) -> str:
        """Problem and kernel."""
        where = f", simulated on {self.device}" if self.device.startswith("sim:") else ""
        return f"<Plan {self.problem} with {self.kernel.name}{where}>"

    def __call__(
        self, a: Any, b: Any, c: Any = None, out: Any = None, *, stream: int | None = None, workspace: int | None = None
    ) -> Any:
        """Run and return ``out``. Raises ArrayError before, LaunchError after the launch."""
        try:
            state = self._local.state
        except AttributeError:
            state = self._state()
        if workspace is not None or not self._refill(state, a, b, c, out, stream):
            self._prepare(state, a, b, c, out, stream, workspace)
        status = self._launch(self._handle, state.reference)
        if status:
            native.check(status, ArrayError)
        return out

    def run_again(self, a: Any, b: Any, c: Any, out: Any, stream: int | None) -> bool:
        """Run if the arrays pass the quick checks of a call like the last one; False, with nothing done, if not."""
        state = self._state()
        if not self._refill(state, a, b, c, out, stream):
            return False
        status = self._launch(self._handle, state.reference)
        if status:
            native.check(status, ArrayError)
        return True

    def bind(self, a: Any, b: Any, c: Any = None, out: Any = None, *, stream: int | None = None) -> BoundPlan:
        """Fix the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time."""
        state = _ThreadState()
        self._prepare(state, a, b, c, out, stream, None)
        return BoundPlan(self, state, (a, b, c, out))

    def _prepare(
        self, state: _ThreadState, a: Any, b: Any, c: Any, out: Any, stream: int | None, scratch: int | None
    ) -> None:
        """Check everything and fill the argument struct."""
        if type(a) is int and type(b) is int and type(out) is int:
            self._fill(state, a, b, c, out, "raw", stream or 0, scratch)
            return
        first, second, result = self._view("a", a, stream), self._view("b", b, stream), self._view("out", out, stream)
        views = {"a": first, "b": second, "out": result}
        if c is not None:
            views["c"] = self._view("c", c, stream)
        check_memory(views)
        self._fill_views(state, first, second, views.get("c"), result, stream, scratch)

    def _fill_views(
        self, state: _ThreadState, a: Operand, b: Operand, c: Operand | None, out: Operand, stream: int | None,
        scratch: int | None,
    ) -> None:  # fmt: skip
        """Fill in checked operands and remember how they look."""
        current = workspace.stream_source(a.family, self._memory)
        if stream is None:
            stream = current() if current is not None else 0
        third = None if c is None else c.pointer
        self._fill(state, a.pointer, b.pointer, third, out.pointer, a.family, stream, scratch)
        look = look_of(a.owner, b.owner, None if c is None else c.owner, out.owner)
        if look is not None:
            self._looks = look, a.family, current

    def _refill(self, state: _ThreadState, a: Any, b: Any, c: Any, out: Any, stream: int | None) -> bool:
        """Fill in the addresses of arrays that look like checked ones and lie apart; False where a check is needed."""
        looks = self._looks
        if looks is None:
            return False
        look, family, current = looks
        found = look.addresses(a, b, c, out)
        if found is None:
            return False
        first, second, third, result = found
        bytes_a, bytes_b, bytes_out = self._bytes
        if -bytes_out < result - first < bytes_a or -bytes_out < result - second < bytes_b:
            return False  # blocks of one larger matrix, or shared memory
        if third is not None and third != result and -bytes_out < result - third < bytes_out:
            return False
        if stream is None:
            stream = 0 if current is None else current()
        if self.workspace_bytes:
            self._fill(state, first, second, third, result, family, stream, None)
        else:
            args = state.args
            args.a = first
            args.b = second
            args.c = third
            args.d = result
            args.stream = stream
            args.workspace = None
        return True

    def _fill(
        self,
        state: _ThreadState,
        a: int,
        b: int,
        c: int | None,
        d: int,
        family: str,
        stream: int,
        scratch: int | None,
    ) -> None:
        args = state.args
        args.a, args.b, args.c, args.d, args.stream = a, b, c, d, stream
        args.workspace = scratch
        args.workspace_bytes = self.workspace_bytes
        if self.workspace_bytes and scratch is None:
            if stream not in state.workspaces:
                state.workspaces[stream] = workspace.allocate(self.workspace_bytes, family, self._memory)
            args.workspace = state.workspaces[stream][0]

    def run_views(self, a: Operand, b: Operand, c: Operand | None, out: Operand, stream: int | None) -> None:
        """Run on operands that were matched against this plan's problem already."""
        for name, view in (("a", a), ("b", b), ("c", c), ("out", out)):
            if view is not None:
                self._check_format(name, view)
        state = self._state()
        self._fill_views(state, a, b, c, out, stream, None)
        native.check(self._launch(self._handle, state.reference), ArrayError)

    def _state(self) -> _ThreadState:
        try:
            state: _ThreadState = self._local.state
        except AttributeError:
            state = self._local.state = _ThreadState()
        return state

    def _view(self, name: str, array: Any, stream: int | None) -> Operand:
        if array is None:
            raise ArrayError("a, b and out must be given; allocate out as problem.m x problem.n, or use gemm()")
        view = operand(array, name, stream)
        problem = self.problem
        rows, columns, dtype, letter, leading = {
            "a": (problem.m, problem.k, problem.dtype_a, problem.layout[0], problem.lda),
            "b": (problem.k, problem.n, problem.dtype_b, problem.layout[1], problem.ldb),
        }.get(name, (problem.m, problem.n, problem.dtype_c, problem.layout[2], problem.ldc))
        if view.shape != (rows, columns) or view.dtype != dtype:
            shape = "x".join(map(str, view.shape))
            raise ArrayError(f"{name} is {shape} {view.dtype}; allowed for this plan: {rows}x{columns} {dtype}")
        if view.device != self._memory:
            raise ArrayError(f"{name} is on {view.device}; allowed for this plan: {self._memory}")
        if not is_addressed_by(view, letter, leading or 1):
            kind = "row" if letter == "r" else "column"
            raise ArrayError(
                f"{name} has strides {view.strides}; allowed for this plan: {kind}-major, leading dimension {leading}"
            )
        if name == "out" and view.readonly:
            raise ArrayError("out cannot be written to; pass a writable array")
        self._check_format(name, view)
        return view

    def _check_format(self, name: str, view: Operand) -> None:
        if view.dtype not in ("fp8", "bf8"):
            return
        wants_fnuz = self.kernel.arch in dtypes.FNUZ_ARCHS
        if view.fnuz != wants_fnuz:
            raise ArchMismatchError(
                f"{name} is in the {'FNUZ' if view.fnuz else 'OCP'} format of {view.dtype}; "
                f"allowed on {self.kernel.arch}: {'FNUZ' if wants_fnuz else 'OCP'}"
            )


class BoundPlan:
    """A plan with its memory: ``bound()`` launches it. The arrays must not be reshaped meanwhile."""

    __slots__ = ("_arguments", "_arrays", "_handle", "_launch", "_state", "plan")

    def __init__(self, plan: Plan, state: _ThreadState, arrays: tuple[Any, ...]) -> None:
        """Made by :meth:`Plan.bind`."""
        self.plan = plan
        self._state = state
        self._arrays = arrays
        self._launch = plan._launch
        self._handle = plan._handle
        self._arguments = state.reference

    def __call__(self) -> Any:
        """Run and return ``out``."""
        status = self._launch(self._handle, self._arguments)
        if status:
            native.check(status, ArrayError)
        return self._arrays[3]

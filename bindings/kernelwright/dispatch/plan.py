"""A problem with its kernel: called again and again with different memory."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kernelwright.dispatch import native, workspace
from kernelwright.dispatch.arrays import Operand, ShuffledB, operand
from kernelwright.dispatch.calls import foreign_call, native_call
from kernelwright.dispatch.device import Device
from kernelwright.dispatch.errors import ArrayError
from kernelwright.dispatch.looks import Look, look_of
from kernelwright.dispatch.manifest import KernelEntry
from kernelwright.dispatch.matching import check_d, check_format, check_memory, check_operand, d_leading, d_operand
from kernelwright.dispatch.problem import GemmProblem
from kernelwright.dispatch.simulated import SimulatedLaunch


class _Call(ctypes.Structure):
    """A launch and its arguments, side by side so that both are filled in at once."""

    _fields_ = [("launch", native.Launch), ("args", native.GemmArgs)]


# From launch.stream to args.d at once: half the time of setting them one by one.
_fill_in = struct.Struct("@PPQIIPPPP").pack_into
_MEMBERS = _Call.launch.offset + native.Launch.stream.offset
_ARGS_BYTES = native.sizeof(native.GemmArgs)
_fill_in_ds = [struct.Struct(f"@{count}P").pack_into for count in range(native.MAX_D + 1)]  # by number of D tensors
_MULTI_D = _Call.args.offset + native.GemmArgs.multi_d.offset


@dataclass(frozen=True)
class Selection:
    """The kernel for a problem and, in a few words, why; :meth:`Dispatcher.explain` has the whole ranking."""

    kernel: KernelEntry
    reason: str


class Checked(NamedTuple):
    """Of arrays that passed the checks of a plan: how they look, their library and where to ask for its stream."""

    look: Look
    family: str
    current: Callable[[], int] | None
    key: tuple[object, ...] | None  # of a shuffled B


class _ThreadState:
    """What one thread reuses between calls: the structs of a call, the function that launches, workspaces by stream."""

    __slots__ = ("call", "launch", "workspaces")

    def __init__(self, device: int) -> None:
        self.call = _Call(native.Launch(native.sizeof(native.Launch), device), native.GemmArgs(_ARGS_BYTES, 0))
        self.launch: Callable[[], Any]  # set by the plan
        self.workspaces: dict[int, tuple[int, Any]] = {}


class Plan:
    """Calls its kernel with arrays, or with addresses as integers. Threads may share it.

    ``plan(a, b, out=d)`` with NumPy arrays, torch tensors, … of exactly the problem's shapes, dtypes and strides;
    ``plan(a_address, b_address, out=d_address)`` checks nothing but null. ``c`` is needed when beta is not 0, ``ds``
    when the problem has D tensors; ``out`` may be ``c`` but must not share memory with anything else.
    On a GPU the launch is asynchronous, on ``stream`` or the array library's current one.
    """

    __slots__ = (
        "__weakref__", "_bytes", "_checked", "_d_bytes", "_handle", "_keep", "_keep_interpreter", "_local", "_memory",
        "_ordinal", "_simulated", "device", "problem", "selection", "split_k", "workspace_bytes",
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
        split_k: int = 1,
        bytes_b: int | None = None,
    ) -> None:
        """Made by :meth:`Dispatcher.plan`; ``keep`` owns what the native plan and ``library``'s table refer to.

        ``split_k`` is what runs; ``bytes_b`` what B takes where it is shuffled.
        """
        self.problem = problem
        self.selection = selection
        self.workspace_bytes = workspace_bytes
        self.device = device.name
        self._memory = device.memory
        self._ordinal = device.ordinal
        self._handle = ctypes.c_void_p(handle)
        self._keep = keep
        self._simulated = SimulatedLaunch(device, self._memory_of, library) if device.simulated else None
        self._keep_interpreter = device.memory == "cpu" and _work(problem) <= _BRIEF
        self._local = threading.local()
        self.split_k = split_k
        bytes_a, plain_b, bytes_out = problem.spans
        self._bytes = bytes_a, plain_b if bytes_b is None else bytes_b, bytes_out
        self._d_bytes = problem.d_spans
        self._checked: Checked | None = None  # of the last call that was not like the one before

    @property
    def kernel(self) -> KernelEntry:
        """The kernel that runs."""
        return self.selection.kernel

    def __repr__(self) -> str:
        """Problem and kernel."""
        where = f", simulated on {self.device}" if self.device.startswith("sim:") else ""
        return f"<Plan {self.problem} with {self.kernel.name}{where}>"

    def __call__(
        self, a: Any, b: Any, c: Any = None, out: Any = None, *, ds: Sequence[Any] = (), stream: int | None = None,
        workspace: int | None = None,
    ) -> Any:  # fmt: skip
        """Run and return ``out``. Raises ArrayError before, LaunchError after the launch."""
        try:
            state = self._local.state
        except AttributeError:
            state = self._state()
        if workspace is not None or not self._refill(state, a, b, c, out, ds, stream):
            self._prepare(state, a, b, c, out, ds, stream, workspace)
        state.launch()
        return out

    def run_again(
        self, checked: Checked, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any], stream: int | None
    ) -> bool:
        """Run arrays with the ``call_key`` of checked ones; False, with nothing done, where a closer look is needed."""
        try:
            state = self._local.state
        except AttributeError:
            state = self._state()
        if not self._refill(state, a, b, c, out, ds, stream, checked):
            return False
        state.launch()
        return True

    def bind(
        self, a: Any, b: Any, c: Any = None, out: Any = None, *, ds: Sequence[Any] = (), stream: int | None = None
    ) -> BoundPlan:
        """Fix the memory too, for the shortest call. The result keeps the arrays alive; one thread at a time."""
        state = _ThreadState(self._ordinal)
        self._prepare(state, a, b, c, out, ds, stream, None)
        return BoundPlan(self, state, (a, b, c, out, *ds))

    def _prepare(
        self, state: _ThreadState, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any], stream: int | None,
        scratch: int | None,
    ) -> None:  # fmt: skip
        """Check everything and fill the argument struct."""
        if len(ds) != self.problem.num_d:
            raise ArrayError(f"ds has {len(ds)} arrays; allowed for this plan: {self.problem.num_d}")
        if type(a) is int and type(b) is int and type(out) is int:
            self._fill(state, a, b, c, out, ds, "raw", stream or 0, scratch)
            return
        first, second, result = self._view("a", a, stream), self._view("b", b, stream), self._view("out", out, stream)
        views = {"a": first, "b": second, "out": result}
        if c is not None:
            views["c"] = self._view("c", c, stream)
        more = [self._view_d(number, d, stream) for number, d in enumerate(ds)]
        check_memory({**views, **{f"ds[{number}]": view for number, view in enumerate(more)}})
        self._fill_views(state, first, second, views.get("c"), result, more, stream, scratch)

    def _fill_views(
        self, state: _ThreadState, a: Operand, b: Operand, c: Operand | None, out: Operand, ds: Sequence[Operand],
        stream: int | None, scratch: int | None,
    ) -> Checked | None:  # fmt: skip
        """Fill in checked operands; remember and return how they look."""
        current = workspace.stream_source(a.family, self._memory)
        if stream is None:
            stream = current() if current is not None else 0
        third = None if c is None else c.pointer
        pointers = [d.pointer for d in ds]
        self._fill(state, a.pointer, b.pointer, third, out.pointer, pointers, a.family, stream, scratch)
        look = look_of(a.owner, b.owner, None if c is None else c.owner, out.owner, [d.owner for d in ds])
        if look is None:
            return None
        self._checked = Checked(look, a.family, current, b.signature if b.b_format else None)
        return self._checked

    def _refill(
        self, state: _ThreadState, a: Any, b: Any, c: Any, out: Any, ds: Sequence[Any], stream: int | None,
        known: Checked | None = None,
    ) -> bool:  # fmt: skip
        """Fill in the addresses of arrays that look like checked ones and lie apart; False where a check is needed.

        Those whose ``call_key`` is that of ``known`` ones are compared with nothing else.
        """
        checked = known or self._checked
        if checked is None:
            return False
        look, family, current, key = checked
        if key is not None:
            if known is None and (type(b) is not ShuffledB or b.key != key):
                return False
            b = b.data
        found = look.addresses(a, b, c, out, ds, known is not None)
        if found is None:
            return False
        first, second, third, result, more = found
        bytes_a, bytes_b, bytes_out = self._bytes
        if -bytes_out < result - first < bytes_a or -bytes_out < result - second < bytes_b:
            return False  # blocks of one larger matrix, or shared memory
        if third is not None and third != result and -bytes_out < result - third < bytes_out:
            return False
        for address, nbytes in zip(more, self._d_bytes, strict=True) if more else ():
            if -bytes_out < result - address < nbytes:
                return False
        if stream is None:
            stream = 0 if current is None else current()
        if more or self.workspace_bytes or type(stream) is not int:
            self._fill(state, first, second, third, result, more, family, stream, None)
        else:
            _fill_in(state.call, _MEMBERS, stream, 0, 0, _ARGS_BYTES, 0, first, second, third or 0, result)
        return True

    def _fill(
        self,
        state: _ThreadState,
        a: int,
        b: int,
        c: int | None,
        d: int,
        ds: Sequence[int],
        family: str,
        stream: int,
        scratch: int | None,
    ) -> None:
        size = self.workspace_bytes
        if size and scratch is None:
            if stream not in state.workspaces:
                state.workspaces[stream] = workspace.allocate(size, family, self._memory)
            scratch = state.workspaces[stream][0]
        try:
            _fill_in(state.call, _MEMBERS, stream, scratch or 0, size, _ARGS_BYTES, 0, a, b, c or 0, d)
            if ds:
                _fill_in_ds[len(ds)](state.call, _MULTI_D, *ds)
        except (struct.error, OverflowError):
            raise ArrayError(
                f"a, b, c, out are at {a!r}, {b!r}, {c!r}, {d!r}, ds at {list(ds)}, workspace at {scratch!r}, stream "
                f"is {stream!r}; allowed: addresses of 64 bits as integers"
            ) from None

    def run_views(
        self, a: Operand, b: Operand, c: Operand | None, out: Operand, stream: int | None, ds: Sequence[Operand] = ()
    ) -> Checked | None:
        """Run on operands that were matched against this plan's problem already; returns how they look."""
        names = ("a", "b", "c", "out", *(f"ds[{number}]" for number in range(len(ds))))
        for name, view in zip(names, (a, b, c, out, *ds), strict=True):
            if view is not None:
                check_format(name, view, self.kernel.arch)
        state = self._state()
        checked = self._fill_views(state, a, b, c, out, ds, stream, None)
        state.launch()
        return checked

    def _state(self) -> _ThreadState:
        try:
            state: _ThreadState = self._local.state
        except AttributeError:
            state = self._local.state = _ThreadState(self._ordinal)
            state.launch = self._call(state, None, None)  # the plan owns it, not the other way round
        return state

    def _call(self, state: _ThreadState, result: object, keep: object) -> Callable[[], Any]:
        """A function that launches with the state's arguments and returns ``result``."""
        if self._simulated is not None:
            return foreign_call(self._simulated, self._handle, state.call.launch, state.call.args, result, keep)
        call = state.call
        return native_call(self._handle, call.launch, call.args, result, self._keep_interpreter, keep)

    def _view(self, name: str, array: Any, stream: int | None) -> Operand:
        if array is None:
            raise ArrayError("a, b and out must be given; allocate out as problem.m x problem.n, or use gemm()")
        view = operand(array, name, stream)
        check_operand(name, name, view, self.problem, self._memory)
        check_format(name, view, self.kernel.arch)
        return view

    def _view_d(self, number: int, array: Any, stream: int | None) -> Operand:
        name, problem = f"ds[{number}]", self.problem
        view = d_operand(array, name, stream)
        check_d(name, view, (problem.m, problem.n), problem.batch, problem.dtype_c)
        if view.device != self._memory:
            raise ArrayError(f"{name} is on {view.device}; allowed for this plan: {self._memory}")
        leading = d_leading(name, view, (problem.m, problem.n), problem.layout[2])
        stride = 0 if view.batch in (None, 1) else view.batch_stride
        assert problem.ld_multi_d is not None and problem.stride_multi_d is not None
        wanted = problem.ld_multi_d[number], problem.stride_multi_d[number]
        if (leading, stride) != wanted:
            raise ArrayError(
                f"{name} has leading dimension {leading} and batch stride {stride} (0 where it repeats); "
                f"allowed for this plan: {wanted[0]} and {wanted[1]}"
            )
        return view

    def _memory_of(self, launch: native.Launch, args: native.GemmArgs) -> list[tuple[int | None, int, bool, str]]:
        """What a simulated launch may touch. C may be D, and is read only where it is not."""
        bytes_a, bytes_b, bytes_d = self._bytes
        found = [(args.a, bytes_a, False, "A"), (args.b, bytes_b, False, "B"), (args.d, bytes_d, True, "D")]
        if args.c is not None and args.c != args.d:
            found.append((args.c, bytes_d, False, "C"))
        found += [(args.multi_d[i], nbytes, False, f"D{i}") for i, nbytes in enumerate(self._d_bytes)]
        return [*found, (launch.workspace, self.workspace_bytes, True, "workspace")]


class BoundPlan:
    """A plan with its memory: ``bound()`` launches it, returns ``out``. The arrays must not be reshaped meanwhile."""

    # Python looks for __call__ in the type, finds the slot, and calls what is in it: no frame of our own.
    __slots__ = ("__call__", "plan")

    if TYPE_CHECKING:

        def __call__(self) -> Any:
            """Run and return ``out``."""

    def __init__(self, plan: Plan, state: _ThreadState, arrays: tuple[Any, ...]) -> None:
        """Made by :meth:`Plan.bind`."""
        self.plan = plan
        object.__setattr__(self, "__call__", plan._call(state, arrays[3], (plan, state, arrays)))


# Multiplications of a product that no other Python thread minds waiting for: some 20 microseconds.
_BRIEF = 1 << 18


def _work(problem: GemmProblem) -> int:
    return max(problem.m, 1) * max(problem.n, 1) * max(problem.k, 1) * max(problem.batch, 1)

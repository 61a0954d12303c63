"""Plans: a problem with the kernels that compute it, launched again and again with different memory.

:class:`OperationPlan` holds the parts common to all operations: the native plan, workspaces, streams, threads and
    simulated devices. An operation's :class:`Binder` checks its arrays and writes their addresses into its argument
    struct.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from kernelwright.dispatch.core import arena, native, workspace
from kernelwright.dispatch.core.calls import foreign_call, native_call
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import ArchMismatchError, ArrayError
from kernelwright.dispatch.core.kernel import KernelEntry, Selection, Stage
from kernelwright.dispatch.core.simulated import Region, SimulatedLaunch
from kernelwright.dispatch.recording import counting

P = TypeVar("P")

Operands = tuple[Any, ...]  # arrays, inputs before outputs; None for an absent optional operand
Addresses = Sequence[Any]  # one for each operand: int, or None if it is absent

_ADDRESSES = {int, type(None)}

_pack_frame = struct.Struct("@PPQ").pack_into  # stream, workspace, workspace_bytes
_FRAME = native.Launch.stream.offset


@dataclass(frozen=True)
class NativePlan:
    """A plan of libkernelwright and its reported properties. ``owner`` keeps alive what the native plan refers to."""

    handle: ctypes.c_void_p
    stages: tuple[Stage, ...]
    reason: str
    choices: str
    workspace_bytes: int
    device: Device
    owner: object


class View(Protocol):
    """The properties of a checked array that the core reads."""

    @property
    def pointer(self) -> int:
        """Address of the first element."""

    @property
    def dtype(self) -> str:
        """Element type, such as ``fp16``."""

    @property
    def fnuz(self) -> bool:
        """Whether 8-bit floats are in an FNUZ format."""

    @property
    def family(self) -> str:
        """The array library, such as ``torch``."""


class Guard(Protocol):
    """Recognises arrays with the metadata of arrays that passed all checks."""

    def addresses(self, operands: Operands, keyed: bool = False) -> Addresses | None:
        """Their addresses, or None if the arrays must be checked."""


class Binder(Protocol):
    """Checks the arrays of one plan and fills its argument struct. Threads share it."""

    brief: bool  # whether a CPU launch is so short that other Python threads may wait for it

    def new_args(self) -> ctypes.Structure:
        """An argument struct for one thread."""

    def check(self, operands: Operands, stream: int | None) -> Sequence[View | None]:
        """View the arrays. Raises ArrayError unless the plan's kernel can be launched with them."""

    def names(self) -> Sequence[str]:
        """Names of the operands in errors."""

    def guard(self, operands: Operands) -> Guard | None:
        """A guard for checked arrays; None for kinds of arrays that are faster to check again."""

    def write_notice(self, operands: Operands, bound: bool = False) -> Callable[[Operands], None] | None:
        """A function to call after a launch, which tells the array library what was written; None if not needed.

        ``bound``: for a bound plan, whose caller may have waived it.
        """

    def bind(self, args: Any, addresses: Addresses) -> bool:
        """Write guarded addresses. False, with nothing written, if outputs may share memory with other operands."""

    def write(self, args: Any, addresses: Addresses) -> None:
        """Write addresses. Raises struct.error for a value that is not an address."""

    def regions(self, args: Any) -> list[Region]:
        """The memory that a launch with these arguments may access, besides its workspace."""


class Checked(NamedTuple):
    """State remembered about arrays that passed a plan's checks."""

    guard: Guard
    family: str
    current_stream: Callable[[], int] | None
    write_notice: Callable[[Operands], None] | None


class _LaunchState:
    """State that one thread or bound plan reuses between launches: two structs, the call, and the workspaces."""

    __slots__ = ("__weakref__", "addresses_checked", "arenas", "args", "frame", "kept", "launch", "scratch", "stream")

    def __init__(self, args: ctypes.Structure, ordinal: int, arenas: arena.Arenas) -> None:
        self.args = args
        self.arenas = arenas
        self.frame = native.Launch(native.sizeof(native.Launch), ordinal)
        self.launch: Callable[[], Any]  # set by the plan
        self.addresses_checked = False
        self.scratch: workspace.Scratch | None = None  # makes workspaces that no other launch uses
        self.kept: object = None  # one of these workspaces, until it is launched
        self.stream: int | None = None  # the stream in the frame, with its workspace; None: write both again


class OperationPlan(Generic[P]):
    """A problem with its kernel, launched repeatedly with different memory. Threads may share a plan.

    :ivar problem: the problem.
    :ivar selection: the kernel of the first stage, and why the plan's kernels were chosen.
    :ivar stages: the kernels that a launch starts, in order.
    :ivar choices: chosen values of what the problem leaves open, such as ``split_k=4``; ``name=value``, separated by
        spaces.
    :ivar device: name of the device, such as ``cuda:0``.
    :ivar workspace_bytes: bytes of scratch memory that a launch needs. Unless the caller provides a workspace, it is
        memory that all plans of one thread and stream share; see :func:`kernelwright.dispatch.trim`.
    """

    __slots__ = (
        "__weakref__", "_binder", "_checked", "_handle", "_keep_interpreter", "_local", "_memory", "_ordinal", "_owner",
        "_shares", "_simulated", "choices", "device", "problem", "selection", "stages", "workspace_bytes",
    )  # fmt: skip

    def __init__(self, problem: P, made: NativePlan, binder: Binder) -> None:
        """Use :meth:`Dispatcher.plan` instead."""
        self.problem = problem
        self.stages = made.stages
        self.choices = made.choices
        self.selection = Selection(made.stages[0].kernel, made.reason)
        self.workspace_bytes = made.workspace_bytes
        self.device = made.device.name
        self._memory = made.device.memory
        self._ordinal = made.device.ordinal
        self._handle = made.handle
        self._owner = made.owner
        self._binder = binder
        libraries = [stage.library for stage in made.stages]
        self._simulated = SimulatedLaunch(made.device, self._regions, libraries) if made.device.simulated else None
        self._keep_interpreter = made.device.memory == "cpu" and binder.brief
        self._shares = made.workspace_bytes > 0 and made.device.memory != "cpu"  # memory that a graph must not keep
        self._local = threading.local()
        self._checked: Checked | None = None  # for the arrays checked last
        counting.note(self)

    @property
    def kernel(self) -> KernelEntry:
        """The kernel that runs; of a plan with several stages, the first."""
        return self.selection.kernel

    @property
    def foreign(self) -> tuple[ctypes.c_void_p, int, Any] | None:
        """Handle, device and an argument struct without addresses, for launches from C++; None if simulated."""
        return None if self._simulated is not None else (self._handle, self._ordinal, self._binder.new_args())

    @property
    def checked(self) -> Checked | None:
        """State remembered about the arrays checked last."""
        return self._checked

    def __repr__(self) -> str:
        """Problem and kernel."""
        where = f", simulated on {self.device}" if self.device.startswith("sim:") else ""
        return f"<{type(self).__name__} {self.problem} with {self.kernel.short}{where}>"

    def launch(self, operands: Operands, stream: int | None = None, workspace_at: int | None = None) -> None:
        """Launch with arrays, or with addresses only, in the operation's order."""
        checked = self._checked if workspace_at is None else None
        if checked is not None and type(operands[0]) is not int and self.relaunch(operands, stream, checked, False):
            return
        state = self._new_state()
        self._bind(state, operands, stream, workspace_at)
        state.launch()
        state.kept = None
        if operands and type(operands[0]) is not int:
            self._notice_writes(operands)

    def relaunch(self, operands: Operands, stream: int | None, checked: Checked, keyed: bool = True) -> bool:
        """Launch with arrays like the ``checked`` ones; False, without a launch, if they must be checked again.

        ``keyed``: they have the metadata key of the checked arrays.
        """
        try:
            state = self._local.state
        except AttributeError:
            state = self._new_state()
        guard, family, current_stream, write_notice = checked
        addresses = guard.addresses(operands, keyed)
        if addresses is None or not self._binder.bind(state.args, addresses):
            return False
        if stream is None:
            stream = 0 if current_stream is None else current_stream()
        if stream != state.stream or (self._shares and self._is_apart(stream)):
            self._write_frame(state, family, stream, None)
        state.launch()
        state.kept = None
        if write_notice is not None:
            write_notice(operands)
        return True

    def launch_views(self, operands: Operands, views: Sequence[View | None], stream: int | None) -> Checked | None:
        """Launch with views that fit the plan's problem. Returns the state to remember about their arrays."""
        state = self._new_state()
        checked = self._bind_views(state, operands, views, stream, None)
        state.launch()
        state.kept = None
        self._notice_writes(operands)
        return checked

    def _notice_writes(self, operands: Operands) -> None:
        write_notice = self._binder.write_notice(operands)
        if write_notice is not None:
            write_notice(operands)

    def bound(
        self, operands: Operands, result: Any, stream: int | None = None, numbers: Mapping[str, int] | None = None
    ) -> BoundPlan:
        """Bind the plan to its memory. Calls return ``result``; ``numbers`` are further members of the arguments."""
        # Memory of its own: another thread may call it while this one launches other plans.
        state = _LaunchState(self._binder.new_args(), self._ordinal, arena.Arenas())
        for name, number in (numbers or {}).items():
            setattr(state.args, name, number)
        self._bind(state, operands, stream, None)
        return BoundPlan(self, state, operands, result)

    def _new_state(self) -> _LaunchState:
        """The state of this thread."""
        try:
            state: _LaunchState = self._local.state
        except AttributeError:
            state = self._local.state = _LaunchState(self._binder.new_args(), self._ordinal, arena.of_thread())
            state.launch = self._call(state, None, None)  # the plan owns the call, not the other way round
        return state

    def _call(self, state: _LaunchState, result: object, keep: object) -> Callable[[], Any]:
        """A function that launches with the state's arguments and returns ``result``."""
        if self._simulated is not None:
            call = foreign_call(self._simulated, self._handle, state.frame, state.args, result, keep)
        else:
            call = native_call(self._handle, state.frame, state.args, result, self._keep_interpreter, keep)
        counter = counting.active()
        return call if counter is None else counter.counted(self.problem, self.kernel.arch, call)

    def forget_calls(self) -> None:
        """Recreate the calls of all threads at their next launch."""
        self._local = threading.local()

    def _bind(self, state: _LaunchState, operands: Operands, stream: int | None, workspace_at: int | None) -> None:
        """Check everything, then write the argument struct."""
        if {*map(type, operands)} <= _ADDRESSES:
            self._write(state, operands, "raw", stream or 0, workspace_at)
            if not state.addresses_checked:  # asking the driver takes as long as the rest of a launch
                workspace.check_addresses(self._binder.regions(state.args), self._memory)
                state.addresses_checked = True
        else:
            self._bind_views(state, operands, self._binder.check(operands, stream), stream, workspace_at)

    def _bind_views(
        self, state: _LaunchState, operands: Operands, views: Sequence[View | None], stream: int | None,
        workspace_at: int | None,
    ) -> Checked | None:  # fmt: skip
        for name, view in zip(self._binder.names(), views, strict=True):
            if view is not None:
                self._check_fp8_format(name, view)
        families = [*dict.fromkeys(view.family for view in views if view is not None)]
        sources = {family: workspace.stream_source(family, self._memory) for family in families}
        # A library with streams can allocate workspaces too.
        family = next((family for family in families if sources[family] is not None), [*families, "raw"][0])
        current_stream = sources.get(family)
        if stream is None:
            stream = 0 if self._memory == "cpu" else workspace.common_stream(families, self._memory)
        self._write(state, [None if view is None else view.pointer for view in views], family, stream, workspace_at)
        guard = self._binder.guard(operands)
        if guard is None:
            return None
        self._checked = Checked(guard, family, current_stream, self._binder.write_notice(operands))
        return self._checked

    def _check_fp8_format(self, name: str, view: View) -> None:
        """Raise ArchMismatchError if 8-bit floats are not in the format that kernels of this architecture read."""
        if view.dtype in ("fp8", "bf8"):
            fnuz = native.fp8_is_fnuz(self.stages[0].library)
            if view.fnuz != fnuz:
                raise ArchMismatchError(
                    f"{name} is in the {'FNUZ' if view.fnuz else 'OCP'} format of {view.dtype}; "
                    f"allowed on {self.kernel.arch}: {'FNUZ' if fnuz else 'OCP'}"
                )

    def _write(
        self, state: _LaunchState, addresses: Addresses, family: str, stream: int, workspace_at: int | None
    ) -> None:
        try:
            self._binder.write(state.args, addresses)
        except (struct.error, OverflowError):
            listed = ", ".join(f"{n} {at!r}" for n, at in zip(self._binder.names(), addresses, strict=True))
            raise ArrayError(f"operands are at {listed}; allowed: addresses of 64 bits as integers") from None
        apart = self._shares and self._is_apart(stream)
        if workspace_at is not None or apart or stream != state.stream:
            self._write_frame(state, family, stream, workspace_at)

    def _write_frame(self, state: _LaunchState, family: str, stream: int, workspace_at: int | None) -> None:
        """Write workspace and stream. Raises ArrayError for a capture that needs a workspace it cannot have."""
        size, state.stream, state.kept = self.workspace_bytes, None, None
        lasts = workspace_at is None  # until another stream comes
        if workspace_at is not None:
            workspace.check_device(workspace_at, self._memory)
        try:
            _pack_frame(state.frame, _FRAME, stream, workspace_at or 0, size)
            if size and workspace_at is None:
                bound = state.arenas is not arena.of_thread()  # and shares nothing
                if self._shares and not bound and self._is_apart(stream):
                    lasts, workspace_at = False, self._of_launch(state, family, stream)
                else:
                    workspace_at = state.arenas.address(size, family, self._memory, stream, state)
                _pack_frame(state.frame, _FRAME, stream, workspace_at, size)
        except (struct.error, OverflowError):
            raise ArrayError(
                f"workspace is at {workspace_at!r}, stream is {stream!r}; allowed: addresses of 64 bits as integers"
            ) from None
        if lasts:
            state.stream = stream

    def _is_apart(self, stream: int) -> bool:
        """Whether a launch must not use the shared workspace: a graph would run it while others use it."""
        return arena.is_apart() or workspace.is_capturing(stream, self._memory)

    def _of_launch(self, state: _LaunchState, family: str, stream: int) -> int:
        """The address of a workspace for one launch, which may be captured in a graph that runs it at any time.

        Memory that torch allocates in a capture belongs to the graph, even after it is freed: torch reuses it for later
        work of the graph. Other array libraries have no such memory.
        """
        if family != "torch":
            raise ArrayError(
                f"stream {stream:#x} is being captured into a graph, which needs a workspace of its own; "
                "bind the plan before the capture and call the bound plan, or pass workspace="
            )
        if state.scratch is None:
            state.scratch = workspace.Scratch(self.workspace_bytes, self._memory)
        address, state.kept = state.scratch.allocate(stream)
        return address

    def _regions(self, launch: native.Launch, args: Any) -> list[Region]:
        """The memory that a simulated launch may access."""
        return [*self._binder.regions(args), Region(launch.workspace, self.workspace_bytes, True, "workspace")]


class BoundPlan:
    """A plan bound to its memory: ``bound()`` launches it and returns ``out``. Do not reshape the arrays in use.

    One thread at a time may call it. It keeps its arrays and its own workspace alive.
    """

    # Python finds the slot of __call__ in the type and calls its value: no Python frame of ours.
    __slots__ = ("__call__", "plan")

    if TYPE_CHECKING:

        def __call__(self) -> Any:
            """Launch and return ``out``."""

    def __init__(self, plan: OperationPlan[Any], state: _LaunchState, operands: Operands, result: Any) -> None:
        """Use :meth:`Plan.bind` instead."""
        self.plan = plan
        launch = plan._call(state, result, (plan, state, operands))
        notice = plan._binder.write_notice(operands, bound=True)
        object.__setattr__(self, "__call__", launch if notice is None else _noticed(launch, notice, operands))

    def __repr__(self) -> str:
        """The plan."""
        return f"<BoundPlan of {self.plan!r}>"


def _noticed(launch: Callable[[], Any], notice: Callable[[Operands], None], operands: Operands) -> Callable[[], Any]:
    """Wrap ``launch`` to tell the array library afterwards what it has written."""

    def call() -> Any:
        result = launch()
        notice(operands)
        return result

    return call

"""A dispatcher of libkernelwright: registered kernels, one selection, plans by problem."""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kernelwright.dispatch.core import native, operation
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import (
    ArrayError,
    KernelwrightError,
    LibraryLoadError,
    NoKernelError,
    SelectionError,
)
from kernelwright.dispatch.core.explanation import Explanation
from kernelwright.dispatch.core.kernel import KernelEntry, Stage
from kernelwright.dispatch.core.operation import Problem
from kernelwright.dispatch.core.plan import NativePlan, OperationPlan
from kernelwright.dispatch.core.refusal import lines
from kernelwright.dispatch.core.selection import Score, ScoreCallback
from kernelwright.dispatch.core.workspace import on_stream
from kernelwright.dispatch.loading.heuristic import Heuristic
from kernelwright.dispatch.recording import counting
from kernelwright.files.proposals import closest

PLAN_LIMIT = 4096  # entries of each cache of a dispatcher
_MAX_UINT32 = 2**32 - 1
_INT32 = -(2**31), 2**31 - 1
_NAMED = {
    "auto": native.SELECT_AUTO,
    "analytic": native.SELECT_ANALYTIC,
    "first_fit": native.SELECT_FIRST_FIT,
}

K = TypeVar("K")
V = TypeVar("V")


class NativeDispatcher:
    """Owns a ``kw_dispatcher`` and the plans it made. Threads may share it."""

    def __init__(self, device: Device, kernels: dict[str, KernelEntry], descriptors: Sequence[Any]) -> None:
        """``kernels`` by identity; ``descriptors`` are the tables of their libraries. Raises LibraryLoadError."""
        self.device = device
        self.kernels = kernels
        self.native = native.library()
        self.handle = self._create()
        self._caches: list[Cache[Any, Any]] = []
        self._reactions: dict[Callable[[], None], None] = {}
        self.plans: Cache[Any, OperationPlan[Any]] = self.new_cache()
        self._kept: dict[Any, OperationPlan[Any]] = {}
        self._score: ScoreCallback | None = None
        self._more: Callable[[Problem], None] | None = None
        self._adding = threading.Lock()
        for descriptor in descriptors:
            status = self.native.kw_dispatcher_add_descriptor(self.handle, descriptor, None)
            native.check(status, LibraryLoadError)

    def add(self, kernels: Mapping[str, KernelEntry], descriptor: Any) -> None:
        """Add a library. Existing plans stay; calls select anew. Raises LibraryLoadError."""
        for identity, kernel in kernels.items():  # before the native side can choose them
            self.kernels.setdefault(identity, kernel)
        native.check(self.native.kw_dispatcher_add_descriptor(self.handle, descriptor, None), LibraryLoadError)
        self._clear()

    def ask_for_more(self, more: Callable[[Problem], None]) -> None:
        """Call ``more`` for a problem that no kernel serves; it adds a library or raises NoKernelError."""
        self._more = more

    def _create(self) -> ctypes.c_void_p:
        device = self.device
        check = native.CHECK_ON_ADD if device.kind == "cpu" else native.CHECK_ON_LAUNCH
        arch = device.arch.encode() if device.arch is not None else None
        size = native.sizeof(native.DispatcherOptions)
        features = device.features.encode() if device.features is not None else None
        options = native.DispatcherOptions(size, check, device.ordinal, device.compute_units, arch, features)
        handle = ctypes.c_void_p()
        native.check(self.native.kw_dispatcher_create(options, native.byref(handle)))
        # Plans own this object, so the native one is destroyed after the last of them.
        weakref.finalize(self, self.native.kw_dispatcher_destroy, handle).atexit = False
        return handle

    def new_cache(self) -> Cache[Any, Any]:
        """A cache that is emptied whenever selection may change."""
        made: Cache[Any, Any] = Cache(PLAN_LIMIT)
        self._caches.append(made)
        return made

    def on_clear(self, react: Callable[[], None]) -> None:
        """Have ``react`` called, once however often it was given, whenever selection may change."""
        self._reactions[react] = None

    def check_memory(self, device: str) -> None:
        """Raise ArrayError for arrays that are not in the memory of the dispatcher's device."""
        if device != self.device.memory:
            raise ArrayError(f"arrays are on {device}; allowed by this dispatcher: {self.device.memory}")

    def made_on(self, stream: int | None, family: str, make: Callable[[], Any]) -> Any:
        """Return ``make()``, which allocates or copies with an array library, run on the stream of a launch."""
        if stream is None:
            return make()
        with on_stream(stream, family, self.device.memory):
            return make()

    def select_by(self, selection: str | Score | Heuristic) -> None:
        """See :class:`Dispatcher`. Raises SelectionError."""
        options = native.SelectionOptions(native.sizeof(native.SelectionOptions))
        if isinstance(selection, Heuristic):
            self._heuristic = selection  # its code must stay loaded
            options.provider = native.SELECT_CALLBACK
            options.score = selection.score
            options.label = selection.name.encode()
            if self.device.kind == "cpu":
                self._units = ctypes.c_uint32(len(os.sched_getaffinity(0)))
                options.user = ctypes.addressof(self._units)
        elif callable(selection):
            self._score = ScoreCallback(selection, self.kernels)
            options.provider = native.SELECT_CALLBACK
            options.score = self._score.native
            options.label = getattr(selection, "__name__", type(selection).__name__).encode()
        elif isinstance(selection, str):
            options.provider = _NAMED.get(selection, native.SELECT_EXPLICIT)
            options.kernel = selection.encode()
        else:
            allowed = "'auto', 'analytic', 'first_fit', a kernel, a function, a Heuristic"
            raise SelectionError(f"selection is {selection!r}; allowed: {allowed}")
        try:
            native.check(self.native.kw_dispatcher_set_selection(self.handle, options), SelectionError)
        except SelectionError as error:
            hint = closest(selection, _NAMED) if isinstance(selection, str) else ""
            raise SelectionError(f"{error}{hint}") from None

    def set_priority(self, kernel: str, priority: int) -> None:
        """See :meth:`Dispatcher.set_priority`. Raises SelectionError."""
        rank = _integer("priority", priority, *_INT32)
        native.check(self.native.kw_dispatcher_set_priority(self.handle, kernel.encode(), rank), SelectionError)
        self._kept.clear()
        self._clear()

    def keep(self, problem: Problem, plan: OperationPlan[Any]) -> None:
        """See :meth:`Dispatcher.keep`."""
        self._kept[problem] = plan
        self._clear()

    def _clear(self) -> None:
        for cache in self._caches:
            cache.clear()
        for react in [*self._reactions]:
            react()

    def set_num_threads(self, threads: int) -> None:
        """See :meth:`Dispatcher.set_num_threads`. Raises SelectionError."""
        count = _integer("threads", threads, 0, _MAX_UINT32, ", 0 for no limit")
        native.check(self.native.kw_dispatcher_set_num_threads(self.handle, count), SelectionError)

    def plan(self, problem: Problem) -> OperationPlan[Any]:
        """The plan for a problem, of its operation's plan type. Raises NoKernelError."""
        try:
            return self.plan_reading(problem)
        except NoKernelError as error:
            return self.plan_refused(problem, error)

    def plan_refused(self, problem: Problem, error: NoKernelError) -> OperationPlan[Any]:
        """The plan of a problem that no kernel serves yet, with a library made by the fallback.

        Without a fallback, tells the recorder that the problem is refused and raises NoKernelError with advice.
        """
        also: tuple[str, ...] = ()
        if self._more is not None:
            try:
                with self._adding:
                    return self._plan_with_more(problem, self._more)
            except NoKernelError as failed:
                also = (f"fallback: {failed.reason}",)
        counting.refused(problem, next(iter(self.kernels.values())).arch)
        said = error.reason
        raise NoKernelError(said, later=lambda: (*lines(problem, self, said), *also)) from None

    def _plan_with_more(self, problem: Problem, more: Callable[[Problem], None]) -> OperationPlan[Any]:
        with contextlib.suppress(NoKernelError):
            return self.plan_reading(problem)  # another thread has added its kernel in the meantime
        more(problem)
        return self.plan_reading(problem)

    def plan_reading(self, problem: Problem) -> OperationPlan[Any]:
        """:meth:`plan` for one of several readings of the same arrays: another reading may be served."""
        plan = self.plans.get(problem)
        if plan is not None:
            return plan
        if problem in self._kept:
            return self.plans.put(problem, self._kept[problem])
        make = operation.of_problem(problem).plan
        made = self._new_plan(problem)
        try:
            plan = make(problem, made)
        except BaseException:
            self.native.kw_plan_destroy(made.handle)
            raise
        weakref.finalize(plan, self.native.kw_plan_destroy, made.handle).atexit = False
        return self.plans.put(problem, plan)

    def _new_plan(self, problem: Problem) -> NativePlan:
        handle, info = ctypes.c_void_p(), native.PlanInfo(native.sizeof(native.PlanInfo))
        struct = problem.native()
        self.check(self.native.kw_plan_create(self.handle, native.byref(struct), native.byref(handle)))
        native.check(self.native.kw_plan_get_info(handle, native.byref(info)))
        stages = tuple(self._stage(handle, index) for index in range(info.stage_count))
        reason, choices = info.reason.decode(), info.choices.decode()
        return NativePlan(handle, stages, reason, choices, info.workspace_bytes, self.device, self)

    def _stage(self, handle: ctypes.c_void_p, index: int) -> Stage:
        info = native.StageInfo(native.sizeof(native.StageInfo))
        native.check(self.native.kw_plan_get_stage(handle, index, native.byref(info)))
        kernel = self.kernels[info.kernel.contents.identity.decode()]
        return Stage(
            kernel, info.reason.decode(), info.choices.decode(), info.workspace_bytes, info.scratch_bytes,
            info.scratch_offset, info.library,
        )  # fmt: skip

    def check(self, status: int, invalid: type[KernelwrightError] | None = None) -> None:
        """Raise the error of a failed status, or the exception of the selection function."""
        if status and self._score is not None:
            self._score.raise_pending()
        native.check(status, invalid)

    def explain(self, problem: Problem) -> str:
        """The ranking of every kernel, as JSON. Raises ProblemError if ``problem`` is not a problem."""
        operation.of_problem(problem)
        struct = problem.native()
        try:
            return self._text(self.native.kw_dispatcher_explain, native.byref(struct))
        except KernelwrightError:
            if self._score is not None:
                self._score.raise_pending()
            raise

    def export_json(self) -> str:
        """See :meth:`Dispatcher.export_json`."""
        return self._text(self.native.kw_dispatcher_export_json)

    def _text(self, function: Callable[..., int], *arguments: Any) -> str:
        return native.text_of(lambda buffer, size, needed: function(self.handle, *arguments, buffer, size, needed))


def _integer(name: str, value: object, least: int, most: int, also: str = "") -> int:
    """Check that ``value`` is an integer from ``least`` to ``most``, which ctypes would not. SelectionError if not."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise SelectionError(f"{name} is {value!r}; allowed: an integer from {least} to {most}{also}")
    return number


class Methods:
    """Base of the classes that give :class:`kernelwright.dispatch.Dispatcher` the calls of an operation.

    Derived classes are listed by :mod:`kernelwright.dispatch.operation_methods`.
    """

    _core: NativeDispatcher

    def _begin(self) -> None:
        """Create the state of the calls. The core exists already; an override calls its base first."""

    def explain(self, problem: Problem, /) -> Explanation:
        """Rank every kernel with its score, or with the reason why it cannot be used. Never raises NoKernelError."""
        device = self._core.device
        simulated_on = device.name if device.simulated else None
        short = {identity: kernel.short for identity, kernel in self._core.kernels.items()}
        return Explanation.parse(problem, self._core.explain(problem), simulated_on, short)

"""Libraries on a device: which kernel serves a problem best, and running it."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tilewright.dispatch import arrays, native, scoring, simulated
from tilewright.dispatch.arrays import Operand
from tilewright.dispatch.cache import Cache
from tilewright.dispatch.device import Device
from tilewright.dispatch.errors import (
    ArchMismatchError,
    ArrayError,
    LibraryLoadError,
    LibraryNotFoundError,
    NoKernelError,
    SelectionError,
    TilewrightError,
)
from tilewright.dispatch.explanation import Explanation
from tilewright.dispatch.library import KernelLibrary
from tilewright.dispatch.looks import call_key
from tilewright.dispatch.manifest import KernelEntry
from tilewright.dispatch.matching import Match, match
from tilewright.dispatch.plan import Plan, Selection
from tilewright.dispatch.problem import GemmProblem

PLAN_LIMIT = 4096  # plans that a dispatcher keeps by problem, and by looks of gemm()'s arrays

Score = Callable[[GemmProblem, Sequence[KernelEntry]], Sequence[float]]


class Dispatcher:
    """Picks and runs kernels. Threads may share one; several may live side by side.

    ``libraries``: loaded ones or paths. ``selection``: ``"analytic"`` (lowest predicted time), ``"first_fit"`` (highest
    priority, then name), the name or identity of one kernel, or a function that maps a problem and its candidates to
    scores, lower is better. A CPU library is checked against the machine at once, a GPU library at its first launch, so
    that selecting and explaining touch no GPU. Raises ArchMismatchError, LibraryLoadError, SelectionError.
    """

    def __init__(
        self,
        libraries: Iterable[KernelLibrary | str | os.PathLike[str]] | KernelLibrary | str | os.PathLike[str],
        device: Device | str = "cpu",
        selection: str | Score = "analytic",
    ) -> None:
        """Load what is not loaded yet and register every kernel."""
        self.device = Device.of(device)
        self.libraries = tuple(_loaded(libraries))
        if not self.libraries:
            raise LibraryNotFoundError("libraries is empty; allowed: one KernelLibrary or more")
        self._kernels = {kernel.identity: kernel for library in self.libraries for kernel in library.kernels}
        self._native = native.library()
        self._handle = self._create()
        self._plans: Cache[GemmProblem, Plan] = Cache(PLAN_LIMIT)
        self._by_arrays: Cache[tuple[object, ...], Plan] = Cache(PLAN_LIMIT)
        self._by_call: Cache[tuple[object, ...], tuple[Plan, Operand]] = Cache(PLAN_LIMIT)  # with a, bare of its memory
        for library in self.libraries:
            self._add(library)
        self._score: scoring.ScoreCallback | None = None
        self._select_by(selection)

    def _create(self) -> ctypes.c_void_p:
        check = native.CHECK_ON_ADD if self.device.kind == "cpu" else native.CHECK_ON_LAUNCH
        arch = self.device.arch.encode() if self.device.arch is not None else None
        options = native.DispatcherOptions(
            native.sizeof(native.DispatcherOptions), check, self.device.ordinal, 0, arch, None
        )
        handle = ctypes.c_void_p()
        native.check(self._native.tw_dispatcher_create(options, native.byref(handle)))
        # Plans hold the dispatcher, so the native one goes when nobody can launch with it any more.
        weakref.finalize(self, self._native.tw_dispatcher_destroy, handle).atexit = False
        return handle

    def _add(self, library: KernelLibrary) -> None:
        if self.device.simulated:
            simulated.check_library(library.path, library.descriptor)
        if library.kind != self.device.library_kind:
            raise ArchMismatchError(
                f"{library.path} is for {library.manifest.target} and runs on {library.kind}; device is {self.device}"
            )
        status = self._native.tw_dispatcher_add_descriptor(self._handle, library.descriptor, None)
        native.check(status, LibraryLoadError)

    def _select_by(self, selection: str | Score) -> None:
        options = native.SelectionOptions(native.sizeof(native.SelectionOptions))
        if callable(selection):
            self._score = scoring.ScoreCallback(selection, self._kernels)
            options.provider = native.SELECT_CALLBACK
            options.score = self._score.native
            options.label = getattr(selection, "__name__", type(selection).__name__).encode()
        elif isinstance(selection, str):
            named = {"analytic": native.SELECT_ANALYTIC, "first_fit": native.SELECT_FIRST_FIT}
            options.provider = named.get(selection, native.SELECT_EXPLICIT)
            options.kernel = selection.encode()
        else:
            raise SelectionError(f"selection is {selection!r}; allowed: 'analytic', 'first_fit', a kernel, a function")
        native.check(self._native.tw_dispatcher_set_selection(self._handle, options), SelectionError)

    def _raise_from_score(self) -> None:
        if self._score is not None:
            self._score.raise_pending()

    @property
    def kernels(self) -> tuple[KernelEntry, ...]:
        """Kernels of all libraries."""
        return tuple(self._kernels.values())

    def set_priority(self, kernel: str | KernelEntry, priority: int) -> None:
        """Prefer a kernel (by name or identity) in first fit and in ties; higher first, default 0."""
        name = kernel.identity if isinstance(kernel, KernelEntry) else kernel
        native.check(self._native.tw_dispatcher_set_priority(self._handle, name.encode(), priority), SelectionError)
        for cache in (self._plans, self._by_arrays, self._by_call):
            cache.clear()

    def set_num_threads(self, threads: int) -> None:
        """Threads that CPU launches may use, 0 for all of the affinity mask; for the whole process."""
        native.check(self._native.tw_dispatcher_set_num_threads(self._handle, threads), SelectionError)

    def plan(self, problem: GemmProblem) -> Plan:
        """The plan for a problem, the same one while it is among the last ``PLAN_LIMIT`` used ones or so.

        NoKernelError says why nothing serves it.
        """
        plan = self._plans.get(problem)
        if plan is not None:
            return plan
        handle = ctypes.c_void_p()
        native_problem = problem.native()
        status = self._native.tw_plan_create(self._handle, native.byref(native_problem), native.byref(handle))
        if status:
            self._raise_from_score()
        native.check(status)
        info = native.PlanInfo(native.sizeof(native.PlanInfo))
        native.check(self._native.tw_plan_get_info(handle, native.byref(info)))
        kernel = self._kernels[info.kernel.contents.identity.decode()]
        selection = Selection(kernel, info.reason.decode())
        plan = Plan(problem, selection, handle.value or 0, info.workspace_bytes, self.device, self, info.library)
        weakref.finalize(plan, self._native.tw_plan_destroy, handle).atexit = False
        return self._plans.put(problem, plan)

    def select(self, problem: GemmProblem) -> Selection:
        """Which kernel would run, and why."""
        return self.plan(problem).selection

    def explain(self, problem: GemmProblem) -> Explanation:
        """Every kernel with its score or the reason why it cannot be used; never raises NoKernelError."""
        native_problem = problem.native()
        try:
            text = native.text_of(
                lambda buffer, size, needed: self._native.tw_dispatcher_explain(
                    self._handle, native.byref(native_problem), buffer, size, needed
                )
            )
        except TilewrightError:
            self._raise_from_score()
            raise
        return Explanation.parse(problem, text, self.device.name if self.device.simulated else None)

    def export_json(self) -> str:
        """Libraries and kernels in first-fit order, as JSON."""
        return native.text_of(
            lambda buffer, size, needed: self._native.tw_dispatcher_export_json(self._handle, buffer, size, needed)
        )

    def gemm(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        stream: int | None = None,
    ) -> Any:
        """alpha * a @ b + beta * c for a (m, k), b (k, n), c and out (m, n); returns ``out``, allocated when not given.

        Strides decide the layouts: a transposed view is a column-major matrix, nothing is copied. ``layout`` (three
        letters r or c for a, b and out) demands them instead. Raises ArrayError, NoKernelError, LaunchError.
        """
        alpha, beta = float(alpha), float(beta)
        looks = call_key(a, b, c, out)
        key = (looks, alpha, beta, layout)
        known = None if looks is None else self._by_call.get(key)
        if known is not None:
            plan, like = known
            result = _empty(plan, like, a) if out is None else out
            if plan.run_again(a, b, c, result, stream):
                return result
        found = match(a, b, c, out, beta=beta, stream=stream)
        if found.a.device != self.device.memory:
            raise ArrayError(f"arrays are on {found.a.device}; allowed by this dispatcher: {self.device.memory}")
        plan = self._plan_for(found, alpha, beta, layout)
        copied = out is None and c is not None
        if found.out is None:
            out = _empty(plan, found.a, a)
            found.out = arrays.operand(out, "out", stream)
        if copied:  # C and D share strides: give C those of the new memory
            _copy(out, c)
            found.c = found.out
        plan.run_views(found.a, found.b, found.c, found.out, stream)
        if looks is not None and not copied:
            self._by_call.replace(key, (plan, found.a._replace(pointer=0, owner=None)))
        return out

    def _plan_for(self, found: Match, alpha: float, beta: float, layout: str | None) -> Plan:
        """A plan for the first of the equivalent readings of the arrays that some kernel serves."""
        views = (found.a, found.b, found.c, found.out)
        key = (*(view and view.signature for view in views), alpha, beta, layout)
        plan = self._by_arrays.get(key)
        if plan is not None:
            return plan
        refused: NoKernelError | None = None
        for problem in found.problems(alpha, beta, layout):
            try:
                return self._by_arrays.put(key, self.plan(problem))
            except NoKernelError as error:
                refused = refused or error
        assert refused is not None  # there is at least one reading
        raise refused


def _loaded(
    libraries: Iterable[KernelLibrary | str | os.PathLike[str]] | KernelLibrary | str | os.PathLike[str],
) -> Iterable[KernelLibrary]:
    if isinstance(libraries, KernelLibrary | str | os.PathLike):
        libraries = [libraries]
    for library in libraries:
        yield library if isinstance(library, KernelLibrary) else KernelLibrary.load(library)


def _empty(plan: Plan, like: Operand, owner: Any) -> Any:
    problem = plan.problem
    return arrays.empty(like, (problem.m, problem.n), problem.dtype_c, problem.layout[2] == "r", owner)


def _copy(target: Any, source: Any) -> None:
    if hasattr(target, "copy_"):  # torch
        target.copy_(source)
    else:
        target[...] = source

"""Libraries on a device: which kernel serves a problem best, and running it."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kernelwright.dispatch import arrays, native, scoring, shuffling, simulated
from kernelwright.dispatch.arrays import Operand, ShuffledB
from kernelwright.dispatch.cache import Cache
from kernelwright.dispatch.device import Device
from kernelwright.dispatch.errors import (
    ArchMismatchError,
    ArrayError,
    KernelwrightError,
    LibraryLoadError,
    LibraryNotFoundError,
    NoKernelError,
    SelectionError,
)
from kernelwright.dispatch.explanation import Explanation
from kernelwright.dispatch.grouped import GroupedGemmProblem, GroupedPlan
from kernelwright.dispatch.library import KernelLibrary
from kernelwright.dispatch.looks import call_key
from kernelwright.dispatch.manifest import KernelEntry
from kernelwright.dispatch.matching import Epilogue, Match, check_format, match
from kernelwright.dispatch.plan import Checked, Plan, Selection
from kernelwright.dispatch.problem import GemmProblem

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
        # With how the arrays look, with a, bare of its memory, and the result's shape.
        self._by_call: Cache[tuple[object, ...], tuple[Plan, Checked, Operand, tuple[int, ...]]] = Cache(PLAN_LIMIT)
        self._grouped: Cache[GroupedGemmProblem, GroupedPlan] = Cache(PLAN_LIMIT)
        self._by_groups: Cache[tuple[object, ...], GroupedPlan] = Cache(PLAN_LIMIT)
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
        native.check(self._native.kw_dispatcher_create(options, native.byref(handle)))
        # Plans hold the dispatcher, so the native one goes when nobody can launch with it any more.
        weakref.finalize(self, self._native.kw_dispatcher_destroy, handle).atexit = False
        return handle

    def _add(self, library: KernelLibrary) -> None:
        if self.device.simulated:
            simulated.check_library(library.path, library.descriptor)
        if library.kind != self.device.library_kind:
            raise ArchMismatchError(
                f"{library.path} is for {library.manifest.target} and runs on {library.kind}; device is {self.device}"
            )
        status = self._native.kw_dispatcher_add_descriptor(self._handle, library.descriptor, None)
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
        native.check(self._native.kw_dispatcher_set_selection(self._handle, options), SelectionError)

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
        native.check(self._native.kw_dispatcher_set_priority(self._handle, name.encode(), priority), SelectionError)
        for cache in (self._plans, self._by_arrays, self._by_call, self._grouped, self._by_groups):
            cache.clear()

    def set_num_threads(self, threads: int) -> None:
        """Threads that CPU launches may use, 0 for all of the affinity mask; for the whole process."""
        native.check(self._native.kw_dispatcher_set_num_threads(self._handle, threads), SelectionError)

    def plan(self, problem: GemmProblem) -> Plan:
        """The plan for a problem, the same one while it is among the last ``PLAN_LIMIT`` used ones or so.

        NoKernelError says why nothing serves it.
        """
        plan = self._plans.get(problem)
        if plan is not None:
            return plan
        handle, info, stage = self._made(problem.native())
        bytes_b = self._shuffled(problem)[1] if problem.b_format else None
        split_k = int(native.choices_of(info.choices.decode())["split_k"])
        plan = Plan(
            problem, self._selected(stage), handle.value or 0, info.workspace_bytes, self.device, self, stage.library,
            split_k, bytes_b,
        )  # fmt: skip
        weakref.finalize(plan, self._native.kw_plan_destroy, handle).atexit = False
        return self._plans.put(problem, plan)

    def plan_grouped(self, problem: GroupedGemmProblem) -> GroupedPlan:
        """The plan for products of different shapes, kept like others. NoKernelError says why nothing serves it."""
        plan = self._grouped.get(problem)
        if plan is not None:
            return plan
        handle, info, stage = self._made(problem.native())
        plan = GroupedPlan(
            problem, self._selected(stage), handle.value or 0, info.workspace_bytes, self.device, self, stage.library
        )
        weakref.finalize(plan, self._native.kw_plan_destroy, handle).atexit = False
        return self._grouped.put(problem, plan)

    def _made(
        self, problem: native.GemmProblem | native.GroupedGemmProblem
    ) -> tuple[ctypes.c_void_p, native.PlanInfo, native.StageInfo]:
        """A native plan of our own, and what it says of itself and of its one stage."""
        handle = ctypes.c_void_p()
        status = self._native.kw_plan_create(self._handle, native.byref(problem), native.byref(handle))
        if status:
            self._raise_from_score()
        native.check(status)
        info = native.PlanInfo(native.sizeof(native.PlanInfo))
        native.check(self._native.kw_plan_get_info(handle, native.byref(info)))
        stage = native.StageInfo(native.sizeof(native.StageInfo))
        native.check(self._native.kw_plan_get_stage(handle, 0, native.byref(stage)))
        return handle, info, stage

    def _selected(self, info: native.StageInfo) -> Selection:
        return Selection(self._kernels[info.kernel.contents.identity.decode()], info.reason.decode())

    def select(self, problem: GemmProblem | GroupedGemmProblem) -> Selection:
        """Which kernel would run, and why."""
        plan = self.plan_grouped(problem) if isinstance(problem, GroupedGemmProblem) else self.plan(problem)
        return plan.selection

    def explain(self, problem: GemmProblem | GroupedGemmProblem) -> Explanation:
        """Every kernel with its score or the reason why it cannot be used; never raises NoKernelError."""
        native_problem = problem.native()
        try:
            text = native.text_of(
                lambda buffer, size, needed: self._native.kw_dispatcher_explain(
                    self._handle, native.byref(native_problem), buffer, size, needed
                )
            )
        except KernelwrightError:
            self._raise_from_score()
            raise
        return Explanation.parse(problem, text, self.device.name if self.device.simulated else None)

    def export_json(self) -> str:
        """Libraries and kernels in first-fit order, as JSON."""
        return native.text_of(
            lambda buffer, size, needed: self._native.kw_dispatcher_export_json(self._handle, buffer, size, needed)
        )

    def gemm(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        out: Any = None,
        *,
        ds: Sequence[Any] = (),
        d_op: str = "add",
        activation: str = "none",
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        split_k: int = 0,
        stream: int | None = None,
    ) -> Any:
        """activation((alpha * a @ b + beta * c) op ds[0] op ds[1] …) for a (m, k), b (k, n), c, out and ds (m, n).

        Returns ``out``, allocated when not given. Strides decide the layouts: a transposed view is a column-major
        matrix, nothing is copied. ``layout`` (three letters r or c for a, b and out) demands them instead.

        Arrays of three dimensions hold a batch of matrices; an ``a`` or ``b`` of two dimensions, or of a batch of 1, is
        shared by all of it. Up to four D tensors of the result's type are combined by ``d_op``, ``"add"`` or
        ``"multiply"``; (n,) or (1, n) is one row for all. ``activation`` is one of those of :class:`GemmProblem`.
        ``b`` may be what :meth:`shuffle_b` made. ``split_k`` is the number of slices of k, 0 to have it chosen. Raises
        ArrayError, ProblemError, NoKernelError, LaunchError.
        """
        alpha, beta = float(alpha), float(beta)
        if type(b) is ShuffledB:
            looks, shuffled = call_key(a, b.data, c, out, ds), b.key
        else:
            looks, shuffled = call_key(a, b, c, out, ds), None
        key = (looks, alpha, beta, layout, d_op, activation, split_k, shuffled)
        known = None if looks is None else self._by_call.get(key)
        if known is not None:
            plan, before, like, shape = known
            result = _empty(plan, like, shape, a) if out is None else out
            if plan.run_again(before, a, b, c, result, ds, stream):
                return result
        found = match(a, b, c, out, ds, beta=beta, stream=stream)
        if found.a.device != self.device.memory:
            raise ArrayError(f"arrays are on {found.a.device}; allowed by this dispatcher: {self.device.memory}")
        plan = self._plan_for(found, Epilogue(alpha, beta, d_op, activation), layout, split_k)
        copied = out is None and c is not None
        if found.out is None:
            out = _empty(plan, found.a, found.shape, a)
            found.out = arrays.operand(out, "out", stream)
        if copied:  # C and D share strides: give C those of the new memory
            _copy(out, c)
            found.c = found.out
        if found.batch == 0:
            return out
        checked = plan.run_views(found.a, found.b, found.c, found.out, stream, found.ds)
        if looks is not None and checked is not None and not copied:
            self._by_call.replace(key, (plan, checked, found.a._replace(pointer=0, owner=None), found.shape))
        return out

    def _plan_for(self, found: Match, epilogue: Epilogue, layout: str | None, split_k: int) -> Plan:
        """A plan for the first of the equivalent readings of the arrays that some kernel serves."""
        views = (found.a, found.b, found.c, found.out, *found.ds)
        key = (*(view and view.signature for view in views), epilogue, layout, split_k)
        plan = self._by_arrays.get(key)
        if plan is not None:
            return plan
        refused: NoKernelError | None = None
        for problem in found.problems(epilogue, layout, split_k):
            try:
                return self._by_arrays.put(key, self.plan(problem))
            except NoKernelError as error:
                refused = refused or error
        assert refused is not None  # there is at least one reading
        raise refused

    def grouped_gemm(
        self,
        a: Sequence[Any],
        b: Sequence[Any],
        outs: Sequence[Any] | None = None,
        cs: Sequence[Any] | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        layout: str | None = None,
        stream: int | None = None,
    ) -> list[Any]:
        """alpha * a[i] @ b[i] + beta * cs[i] for every i in one launch; returns ``outs``, allocated when not given.

        Every group has sizes of its own; dtypes and layouts are the same for all, and read from strides as
        :meth:`gemm` does. ``cs[i]`` may be ``outs[i]``. Raises ArrayError, NoKernelError, LaunchError.
        """
        counts = {
            "a": a,
            "b": b,
            **({"outs": outs} if outs is not None else {}),
            **({"cs": cs} if cs is not None else {}),
        }
        if len({len(arrays_) for arrays_ in counts.values()}) > 1:
            listed = ", ".join(f"{name} {len(arrays_)}" for name, arrays_ in counts.items())
            raise ArrayError(f"numbers of matrices differ: {listed}; allowed: one for each group")
        if cs is not None and outs is None:
            raise ArrayError("cs is given without outs; pass outs, which may be cs")
        if not a:
            return []
        nothing = [None] * len(a)
        matches = [
            _match_group(number, operands, float(beta), stream)
            for number, operands in enumerate(zip(a, b, cs or nothing, outs or nothing, strict=True))
        ]
        plan = self._grouped_plan_for(matches, Epilogue(float(alpha), float(beta)), layout)
        results = list(outs) if outs is not None else []
        for found, first in zip(matches, a, strict=True):
            if found.out is None:
                results.append(arrays.empty(found.a, found.shape, found.dtype_c, plan.problem.layout[2] == "r", first))
                found.out = arrays.operand(results[-1], "out", stream)
        views = {"a": [found.a for found in matches], "b": [found.b for found in matches]}
        views["out"] = [found.out for found in matches if found.out is not None]
        if cs is not None:
            views["c"] = [found.c for found in matches if found.c is not None]
        for name, group in views.items():
            for number, view in enumerate(group):
                check_format(f"{name}[{number}]", view, plan.kernel.arch)
        plan.run_views(views, stream)
        return results

    def _grouped_plan_for(self, matches: Sequence[Match], epilogue: Epilogue, layout: str | None) -> GroupedPlan:
        """A plan for the first layout that all groups can be read in and some kernel serves."""
        for number, found in enumerate(matches):
            if found.a.device != self.device.memory:
                raise ArrayError(
                    f"a[{number}] is on {found.a.device}; allowed by this dispatcher: {self.device.memory}"
                )
            if found.batch is not None or found.b.b_format:
                raise ArrayError(f"group {number} is a batch or has a shuffled b; allowed: matrices of two dimensions")
        operands = [view for found in matches for view in (found.a, found.b, found.c, found.out)]
        key = (*(view and view.signature for view in operands), epilogue, layout)
        plan = self._by_groups.get(key)
        return plan if plan is not None else self._by_groups.put(key, self._plan_groups(matches, epilogue, layout))

    def _plan_groups(self, matches: Sequence[Match], epilogue: Epilogue, layout: str | None) -> GroupedPlan:
        readings = [{problem.layout: problem for problem in found.problems(epilogue, layout, 1)} for found in matches]
        common = [letters for letters in readings[0] if all(letters in group for group in readings)]
        if not common:
            raise ArrayError("no layout fits all groups; pass every a, b and out in the same order")
        refused: NoKernelError | None = None
        for letters in common:
            problems = [group[letters] for group in readings]
            first = problems[0]
            for number, other in enumerate(problems):
                for field in ("dtype_a", "dtype_b", "dtype_c"):
                    if getattr(other, field) != getattr(first, field):
                        text = (
                            f"{field} is {getattr(other, field)} in group {number}, {getattr(first, field)} in group 0"
                        )
                        raise ArrayError(f"{text}; they must be equal")
            groups = tuple((p.m, p.n, p.k, p.lda or 1, p.ldb or 1, p.ldc or 1) for p in problems)
            try:
                return self.plan_grouped(
                    GroupedGemmProblem(
                        groups, layout=letters, dtype=first.dtype_a, dtype_b=first.dtype_b, dtype_c=first.dtype_c,
                        alpha=epilogue.alpha, beta=epilogue.beta,
                    )
                )  # fmt: skip
            except NoKernelError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def shuffle_b(
        self, b: Any, *, m: int = 1024, dtype_c: str = "", layout: str | None = None, **fields: Any
    ) -> ShuffledB:
        """B (k, n) in the order of the best kernel that reads one of its own, for :meth:`gemm` and plans.

        ``m`` is the number of rows of A that is expected, on which the choice of the kernel depends; ``fields`` are
        those of :class:`GemmProblem` that the products will have (``activation``, ``num_d``, …). B is copied, through
        the host if it is on a GPU, and turned if the kernels want the other layout; ``layout`` (three letters) demands
        one. Raises ArrayError, NoKernelError.
        """
        view = arrays.operand(b, "b")
        if view.device not in ("cpu", self.device.memory):
            raise ArrayError(f"b is on {view.device}; allowed by this dispatcher: {self.device.memory}, or cpu")
        if view.batch is not None or view.b_format:
            raise ArrayError("b is a batch, or shuffled already; allowed: one matrix as it is")
        return shuffling.shuffle(self._shuffled, self._shuffle, view, self.device.memory, m, dtype_c, layout, fields)

    def _shuffled(self, problem: GemmProblem) -> tuple[int, int]:
        """The b_format, of the problem or else the best one, and the bytes that B takes in it."""
        b_format, nbytes = ctypes.c_uint64(), ctypes.c_uint64()
        native_problem = problem.native()
        status = self._native.kw_dispatcher_shuffled_b(
            self._handle, native.byref(native_problem), native.byref(b_format), native.byref(nbytes)
        )
        if status:
            self._raise_from_score()
        native.check(status)
        return b_format.value, nbytes.value

    def _shuffle(self, problem: GemmProblem, source: int, target: int, nbytes: int) -> None:
        native_problem = problem.native()
        status = self._native.kw_dispatcher_shuffle_b(
            self._handle, native.byref(native_problem), source, target, nbytes
        )
        native.check(status, ArrayError)


def _loaded(
    libraries: Iterable[KernelLibrary | str | os.PathLike[str]] | KernelLibrary | str | os.PathLike[str],
) -> Iterable[KernelLibrary]:
    if isinstance(libraries, KernelLibrary | str | os.PathLike):
        libraries = [libraries]
    for library in libraries:
        yield library if isinstance(library, KernelLibrary) else KernelLibrary.load(library)


def _match_group(number: int, operands: tuple[Any, ...], beta: float, stream: int | None) -> Match:
    try:
        return match(*operands, beta=beta, stream=stream)
    except ArrayError as error:
        raise ArrayError(f"group {number}: {error}") from None


def _empty(plan: Plan, like: Operand, shape: tuple[int, ...], owner: Any) -> Any:
    problem = plan.problem
    return arrays.empty(like, shape, problem.dtype_c, problem.layout[2] == "r", owner)


def _copy(target: Any, source: Any) -> None:
    if hasattr(target, "copy_"):  # torch
        target.copy_(source)
    else:
        target[...] = source

"""A registry: kernels of one architecture, compiled if missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernelwright.codegen.actions import CompilePlan
from kernelwright.codegen.backends.registry import ToolchainChoice, backend_for
from kernelwright.codegen.building.build import library_files
from kernelwright.codegen.building.cache_folder import CacheError, default_cache, is_shared, make_private
from kernelwright.codegen.building.execute import BuildError, LocalExecutor, Watcher
from kernelwright.codegen.building.run_command import TIMEOUT_S
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.batches import batches
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.resources.limits import Limits, strictest
from kernelwright.codegen.selecting.selection import Selection, load_archs, select
from kernelwright.codegen.violations import SpecError
from kernelwright.dispatch import Device, Dispatcher, KernelLibrary, NoKernelError
from kernelwright.dispatch.core.kernel import count_of
from kernelwright.dispatch.core.operation import Problem, of_problem
from kernelwright.dispatch.core.refusal import shortest
from kernelwright.dispatch.recording.trace import VERSION, entry
from kernelwright.jit.errors import BuildFailedError, JitDisabledError, ToolchainError
from kernelwright.jit.libraries import LibraryCache, library_key
from kernelwright.jit.progress import display
from kernelwright.jit.toolchains import Trees, find_trees
from kernelwright.jit.trusted_cache import unusable
from kernelwright.problems.short_names import short_name

SWITCH = "KERNELWRIGHT_JIT"
"""``off`` forbids compiling: kernels in the cache are used, and all others refused with a list."""


class Registry:
    """Kernels for the best architecture of ``device``, or for the one it states (``Device("hip:0", arch="gfx942")``).

    ``cache``: a folder that processes and machines of one kind may share; default ``KERNELWRIGHT_CACHE``, or
    ``~/.cache/kernelwright``. A cache to which another user can write is refused unless ``shared_cache`` is true
    (default: whether ``KERNELWRIGHT_SHARED_CACHE`` is ``on``). ``toolchains`` chooses compilers as
    ``[kernelwright-…].toolchain`` does; ``trees`` names their folders if they are not installed wheels. Nothing is
    compiled before :meth:`build`.
    """

    def __init__(
        self,
        device: Device | str = "cpu",
        *,
        name: str = "jit",
        cache: str | os.PathLike[str] | None = None,
        shared_cache: bool | None = None,
        toolchains: Mapping[str, ToolchainChoice] | None = None,
        trees: Mapping[str, Path] | None = None,
    ) -> None:
        """Look up the device's architecture. Raises DeviceError if it is absent, ArchError if no kernel targets it."""
        self.device = Device.of(device)
        self.name = name
        self.cache = Path(cache) if cache is not None else default_cache()
        self._shared = is_shared() if shared_cache is None else shared_cache
        self._known = load_archs()
        self.arch = self._known[_first(self.device.archs, self._known)]
        self._toolchains = dict(toolchains or {})
        self._given = trees
        self._kernels: dict[str, Kernel] = {}
        self._limits: dict[str, Limits] = {}

    def __repr__(self) -> str:
        """Name, device, architecture and number of kernels."""
        return f"<Registry {self.name} on {self.device}: {count_of(len(self._kernels), 'kernel')} for {self.arch.name}>"

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels, sorted by name."""
        return tuple(sorted(self._kernels.values(), key=lambda kernel: kernel.name))

    def add(self, spec: Mapping[str, Any] | None = None, /, *, limits: Limits | None = None, **fields: Any) -> Kernel:
        """Add one kernel: ``add(op="gemm", dtype="bf16", tile=[128, 128, 32], …)`` or a mapping of such fields.

        Omitted fields get the architecture's defaults. Raises SpecError for unknown fields and values, and
        IllegalKernelError, with every reason, for a kernel that the architecture cannot run.
        """
        (kernel,) = self._add("specs", [{**(spec or {}), **fields}], None, limits)
        return kernel

    def add_set(self, name: str, *, filter: str | None = None, limits: Limits | None = None) -> tuple[Kernel, ...]:
        """Add the kernels of a set such as ``"gemm:essential"``; ``filter`` keeps those for which it is true."""
        return self._add("set", name, filter, limits)

    def add_config(
        self,
        config: Mapping[str, Any] | str | os.PathLike[str],
        *,
        filter: str | None = None,
        limits: Limits | None = None,
    ) -> tuple[Kernel, ...]:
        """Add every legal kernel of a configuration (data, or the path of a JSON file), with the limits in it."""
        value = config if isinstance(config, Mapping) else os.fspath(config)
        return self._add("config", value, filter, limits)

    def add_problems(
        self, problems: Sequence[Problem] | str | os.PathLike[str], *, limits: Limits | None = None
    ) -> tuple[Kernel, ...]:
        """Add the kernels that serve problems, or those of a recorded trace, with the least total predicted time.

        Candidates are the preselected kernels of the problems' types, with the problems' epilogues. Raises SpecError
        for a file that is not a trace, and if no candidate serves one of the problems; ProblemError for an invalid
        problem.
        """
        trace: Any
        if isinstance(problems, str | os.PathLike):
            trace = Path(problems)
        else:
            for problem in problems:
                of_problem(problem)
            listed = [vars(entry(problem, self.arch.name, count=1)) for problem in problems]
            trace = {"version": VERSION, "problems": listed}
        return self._add("problems", {"trace": trace}, None, limits)

    def missing(self) -> tuple[Kernel, ...]:
        """Kernels that :meth:`build` would have to compile; all of them if it must only link, or has no compiler."""
        return self._missing(*self._planned())

    def build(
        self,
        max_workers: int | None = None,
        *,
        memory_mb: int | None = None,
        progress: bool | None = None,
        retry_failed: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> KernelLibrary:
        """Build a library of all kernels, from the cache or compiled: at most ``max_workers`` commands at once.

        The critical path starts first; as many commands run at once as fit into ``memory_mb`` (default: the memory free
        now), including those of other builds with the same cache. ``progress``: False shows none on stderr; if stderr
        is not a terminal, None shows a line a second, True one per command. A command that failed before fails again at
        once until one of its inputs changes, unless ``retry_failed``. A command that takes longer than ``timeout_s``
        seconds is killed with all its child processes.

        Raises SpecError for an empty registry, UntrustedCacheError, UnusableCacheError for a cache that is not a folder
        or that is read-only and lacks a kernel, JitDisabledError, ToolchainError, BuildFailedError with everything that
        the compilers printed, and ``kernelwright.codegen.resources.limits.LimitError`` for kernels beyond their limits.
        """
        item, plan, key = self._planned()
        cache = self._library_cache()
        trees = self._trees(plan)
        cached = cache.find(key, trees.stamps if isinstance(trees, Trees) else {})
        if cached is not None:
            return cached
        allowed = _may_compile()
        missing = () if allowed else self._missing(item, plan, key)
        if missing:
            raise JitDisabledError(self.arch.name, [kernel.name for kernel in missing])
        if isinstance(trees, ToolchainError):
            raise trees
        workers = max_workers if max_workers is not None else len(os.sched_getaffinity(0))
        if workers < 1:
            raise SpecError(f"max_workers = {max_workers!r}: allowed: whole numbers from 1")
        if not timeout_s > 0:
            raise SpecError(f"timeout_s = {timeout_s!r}: allowed: seconds above 0")
        cache.check_tools()
        with display(f"{self.name} for {self.arch.name}", progress) as watcher:
            executor = self._executor(trees, workers, memory_mb, watcher)
            executor.retry_failed, executor.timeout_s = retry_failed, timeout_s
            files = self._run(executor, item, plan)
        materials = executor.materials(plan.all_actions)
        made = library_files(self.name, item, plan, self._toolchains, files, executor.costs, (), materials)
        return cache.make(key, trees.stamps, lambda: made)

    def dispatcher(
        self, libraries: Sequence[KernelLibrary] = (), selection: Any = "analytic", **build: Any
    ) -> Dispatcher:
        """A dispatcher on the device with all kernels and those of ``libraries``; ``build``: see :meth:`build`."""
        return Dispatcher([*libraries, self.build(**build)], self.device, selection)

    def library_for(self, problem: Problem) -> KernelLibrary:
        """Build a library with the kernel that :meth:`add_problems` adds for a problem; a line on stderr reports it.

        ``Dispatcher(…, fallback=registry)`` calls it. Raises NoKernelError if no candidate serves the problem, and the
        errors of :meth:`build`.
        """
        try:
            added = self.add_problems([problem])
        except SpecError as error:
            raise NoKernelError(str(error)) from None
        names = ", ".join(short_name(kernel.spec.model_dump(mode="json"), kernel.name) for kernel in added)
        print(f"kernelwright: no loaded kernel serves {shortest(problem)}; compiling {names}", file=sys.stderr)
        return self.build()

    def select(self, problem: Problem, selection: Any = "analytic", **build: Any) -> Kernel:
        """The registry's kernel that a problem of any operation would run with. NoKernelError says why there is none.

        Missing kernels are compiled: only a library knows what its kernels serve. ``build``: see :meth:`build`.
        """
        chosen = self.dispatcher(selection=selection, **build).select(problem).kernel.identity
        return self._kernels[chosen]

    def _add(self, source: str, value: Any, expression: str | None, limits: Limits | None) -> tuple[Kernel, ...]:
        (item,) = select(source, value, [self.arch.name], self._known, expression, limits)
        for kernel in item.kernels:
            self._kernels[kernel.identity] = kernel
            stated = (self._limits.get(kernel.identity, {}), item.limits.get(kernel.identity, {}))
            self._limits[kernel.identity] = strictest(stated)
        return item.kernels

    def _planned(self) -> tuple[Selection, CompilePlan, str]:
        limits = {identity: stated for identity, stated in self._limits.items() if stated}
        item = Selection(self.arch, self.kernels, {}, limits)
        plan = compile_plan(self.name, self.arch, item.kernels, backend_for(self.arch, self._toolchains))
        return item, plan, library_key(self.name, item, plan, self._toolchains, self._given)

    def _library_cache(self) -> LibraryCache:
        cache = LibraryCache(self.cache, self._shared)
        cache.check()
        if not self._shared:
            with suppress(OSError):  # a cache that cannot be written may still have the library
                make_private(self.cache)
        return cache

    def _trees(self, plan: CompilePlan) -> Trees | ToolchainError:
        try:
            trees = {tree for action in plan.all_actions for tree in action.trees}
            return find_trees(trees, self._given, cache=self.cache)
        except ToolchainError as error:
            return error

    def _missing(self, item: Selection, plan: CompilePlan, key: str) -> tuple[Kernel, ...]:
        cache = self._library_cache()
        trees = self._trees(plan)
        if cache.find(key, {} if isinstance(trees, ToolchainError) else trees.stamps):
            return ()
        if isinstance(trees, ToolchainError):
            return item.kernels
        executor = self._executor(trees, 1, None, Watcher())
        try:
            unmade = set(executor.missing(plan.all_files, plan.all_actions))
        except (CacheError, OSError):  # an unwritable cache has no results, only libraries
            return item.kernels
        roads = zip(item.kernels, plan.kernels, strict=True)
        missing = tuple(kernel for kernel, road in roads if unmade.intersection(road.actions))
        return missing or (item.kernels if unmade else ())

    def _executor(self, trees: Trees, workers: int, memory_mb: int | None, watcher: Watcher) -> LocalExecutor:
        check = LibraryCache(self.cache, self._shared).check_result
        return LocalExecutor(
            trees.roots, self.cache, workers, memory_mb, watcher=watcher, shared=self._shared, check=check
        )

    def _run(self, executor: LocalExecutor, item: Selection, plan: CompilePlan) -> dict[str, Path]:
        compiles = [road.actions[0] for road in plan.kernels]
        backend = backend_for(self.arch, self._toolchains)
        try:
            with unusable():
                unmade = set(executor.missing(plan.all_files, compiles))
                together = batches(item.kernels, self.arch, plan.kernels, backend, unmade, executor.jobs)
                return executor.run(plan.all_files, plan.all_actions, keep_going=True, batches=together)
        except BuildError as error:
            failures = {one.action.description: str(one) for one in error.errors}
            raise BuildFailedError(failures, len(plan.kernels)) from None


def _may_compile() -> bool:
    value = os.environ.get(SWITCH, "on")
    if value not in ("on", "off"):
        raise SpecError(f"{SWITCH} is {value!r}; allowed: on, off")
    return value == "on"


def _first(archs: Sequence[str], known: Mapping[str, object]) -> str:
    usable = [arch for arch in archs if arch in known]
    if not usable:
        raise SpecError(f"no kernels exist for {' or '.join(archs)}; architectures: {', '.join(known)}")
    return usable[0]

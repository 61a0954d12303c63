"""The simulated device behind ``Device("sim:gfx942")``: settings, the memory of a launch, and its reports."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any, Protocol

from kernelwright.simulator.checks.debugging import Debug
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.counting.observer import Counts
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.run.report import LaunchReport
from kernelwright.simulator.run.runtime import ARCHS, Request, Runtime, library_path

__all__ = ["ARCHS", "Buffer", "SimulatorError", "configure", "last_report", "last_reports", "library_path", "run"]


@dataclass(frozen=True)
class Settings:
    """The settings of a launch; :func:`configure` explains them."""

    checks: Checks = field(default_factory=Checks)
    seed: int | None = None
    processes: int = 1
    instruction_limit: int | None = None
    debug: Debug | None = None
    counts: Counts | None = None


class Executor(Protocol):
    """The part of :class:`Simulator` that launches need."""

    def launch(
        self,
        image: bytes,
        kernel: str,
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: bytes,
        buffers: Sequence[Buffer],
        dynamic_lds: int = 0,
        arch: str | None = None,
    ) -> LaunchReport:
        """Run a kernel to completion; see :meth:`Simulator.launch`."""


def _simulator(settings: Settings) -> Executor:
    return Simulator(
        checks=settings.checks,
        seed=settings.seed,
        processes=settings.processes,
        instruction_limit=settings.instruction_limit,
        debug=settings.debug,
        counts=settings.counts,
    )


class _Call(threading.local):
    """The buffers of the calling thread's current call, and the reports or the error of its launches."""

    buffers: Sequence[Buffer] = ()
    reports: tuple[LaunchReport, ...] = ()
    failure: BaseException | None = None


class _State:
    """State of the process. A forked child gets a new one, because another thread of the parent may hold a lock."""

    def __init__(self, overrides: Sequence[dict[str, Any]] = ()) -> None:
        self.lock = threading.Lock()  # guards the members below
        self.launching = threading.Lock()  # one kernel at a time: the GIL would serialise them anyway
        self.overrides = list(overrides)
        self.executor: tuple[Settings, Executor] | None = None


_call = _Call()
_state = _State()
_runtime: Runtime | None = None


def _after_fork() -> None:
    global _state
    _state = _State(_state.overrides)


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def configure(
    *,
    checks: Checks | EllipsisType = ...,
    seed: int | EllipsisType | None = ...,
    processes: int | EllipsisType = ...,
    instruction_limit: int | EllipsisType | None = ...,
    debug: Debug | EllipsisType | None = ...,
    counts: Counts | EllipsisType | None = ...,
) -> Iterator[None]:
    """Set options of all simulated devices of this process inside a ``with`` block; omitted options keep their values.

    ``checks``: the optional checks. ``seed``: seed of the random order in which waves run between barriers, or None for
    a fixed order. ``processes``: number of processes that share the workgroups of a launch. ``instruction_limit``:
    maximum number of instructions of a launch, or None for no limit. ``debug``: traces and breakpoints, or None.
    ``counts``: counts the instructions and memory accesses of each launch, or None. If several threads overlap, the
    block entered last wins. Raises TypeError or ValueError for an illegal value.
    """
    given: dict[str, Any] = {"checks": checks, "seed": seed, "processes": processes, "debug": debug, "counts": counts}
    given["instruction_limit"] = instruction_limit
    override = {name: value for name, value in given.items() if value is not ...}
    _check(override)
    with _state.lock:
        _state.overrides.append(override)
    try:
        yield
    finally:
        with _state.lock:  # a child forked inside the block has another state with the same overrides
            _state.overrides = [other for other in _state.overrides if other is not override]


def _check(override: dict[str, Any]) -> None:
    if "checks" in override and not isinstance(override["checks"], Checks):
        raise TypeError(f"checks is {override['checks']!r}; allowed: kernelwright.simulator.Checks(…)")
    if override.get("debug") is not None and not isinstance(override["debug"], Debug):
        raise TypeError(f"debug is {override['debug']!r}; allowed: None, kernelwright.simulator.Debug(…)")
    if override.get("counts") is not None and not isinstance(override["counts"], Counts):
        raise TypeError(f"counts is {override['counts']!r}; allowed: None, kernelwright.simulator.Counts()")
    seed, processes = override.get("seed"), override.get("processes", 1)
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ValueError(f"seed is {seed!r}; allowed: None, or an integer from 0 on")
    if type(processes) is not int or processes < 1:
        raise ValueError(f"processes is {processes!r}; allowed: an integer from 1 on")
    limit = override.get("instruction_limit")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise ValueError(f"instruction_limit is {limit!r}; allowed: None, or an integer from 1 on")


def settings() -> Settings:
    """The settings that a launch would use now."""
    current = Settings()
    with _state.lock:
        for override in _state.overrides:
            current = replace(current, **override)
    return current


def last_report() -> LaunchReport | None:
    """The report of the last kernel in the calling thread's last call on a simulated device.

    None if no kernel of that call ran to completion.
    """
    return _call.reports[-1] if _call.reports else None


def last_reports() -> tuple[LaunchReport, ...]:
    """Reports of all kernels in the calling thread's last call, in order of launch: a split-K GEMM launches two."""
    return _call.reports


def run(arch: str, buffers: Sequence[Buffer], launch: Callable[[], int]) -> int:
    """Make the simulated ``arch`` the current device and call ``launch``; its kernels may access only ``buffers``.

    Returns the status of ``launch``. If the simulator stopped a kernel, raises its error: a SimulatorError, usually a
    Fault.
    """
    _loaded().select(arch)
    outer = _call.buffers
    _call.buffers, _call.reports, _call.failure = tuple(buffers), (), None
    try:
        status = launch()
        if _call.failure is not None:
            raise _call.failure
        return status
    finally:
        _call.buffers, _call.failure = outer, None


def _loaded() -> Runtime:
    global _runtime
    if _runtime is None:
        path = library_path()
        with _state.lock:
            if _runtime is None:
                _runtime = Runtime(path, _execute)
    return _runtime


def _execute(request: Request) -> None:
    """Run one launch of the HIP runtime, in the thread that called it."""
    try:
        with _state.launching:
            report = _executor().launch(
                request.image,
                request.kernel,
                grid=request.grid,
                block=request.block,
                arguments=request.arguments,
                buffers=_call.buffers,
                dynamic_lds=request.dynamic_lds,
                arch=request.arch,
            )
    except BaseException as error:
        _call.failure = error
        raise
    _call.reports = (*_call.reports, report)


def _executor() -> Executor:
    """The simulator for the current settings, reused until they change. The caller holds the lock ``launching``."""
    wanted = settings()
    if _state.executor is None or _state.executor[0] != wanted:
        _state.executor = wanted, _simulator(wanted)
    return _state.executor[1]

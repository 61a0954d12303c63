"""What stands behind ``Device("sim:gfx942")``: memory of a launch, settings, and the report of what ran."""

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
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.run.report import LaunchReport
from kernelwright.simulator.run.runtime import ARCHS, Request, Runtime, library_path

__all__ = ["ARCHS", "Buffer", "SimulatorError", "configure", "last_report", "last_reports", "library_path", "run"]


@dataclass(frozen=True)
class Settings:
    """See :func:`configure`."""

    checks: Checks = field(default_factory=Checks)
    seed: int | None = None
    processes: int = 1
    debug: Debug | None = None


class Executor(Protocol):
    """The part of :class:`Simulator` that launches use."""

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
    ) -> LaunchReport:
        """Run a kernel to its end."""


def _simulator(settings: Settings) -> Executor:
    return Simulator(checks=settings.checks, seed=settings.seed, processes=settings.processes, debug=settings.debug)


class _Call(threading.local):
    """What the calling thread launches with, and what came of it."""

    buffers: Sequence[Buffer] = ()
    reports: tuple[LaunchReport, ...] = ()
    failure: BaseException | None = None


class _State:
    """Of the process. A forked child starts with its own: locks may be held and workers belong to the parent."""

    def __init__(self, overrides: Sequence[dict[str, Any]] = ()) -> None:
        self.lock = threading.Lock()  # of the members below
        self.launching = threading.Lock()  # one kernel at a time: the interpreter's lock would take turns anyway
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
    debug: Debug | EllipsisType | None = ...,
) -> Iterator[None]:
    """Settings of every simulated device of this process while the context lasts; what is not given stays.

    ``checks``: what to look for beside the result. ``seed``: of the random order in which waves run between barriers,
    None for a fixed one. ``processes``: how many share the workgroups of a launch. ``debug``: traces and breakpoints.
    Where contexts of several threads overlap, the one that was entered last decides. Raises TypeError, ValueError.
    """
    given = {"checks": checks, "seed": seed, "processes": processes, "debug": debug}
    override = {name: value for name, value in given.items() if value is not ...}
    _check(override)
    with _state.lock:
        _state.overrides.append(override)
    try:
        yield
    finally:
        with _state.lock:  # in a child forked meanwhile it is another one, with the same overrides
            _state.overrides = [other for other in _state.overrides if other is not override]


def _check(override: dict[str, Any]) -> None:
    if "checks" in override and not isinstance(override["checks"], Checks):
        raise TypeError(f"checks is {override['checks']!r}; allowed: kernelwright.simulator.Checks(…)")
    if override.get("debug") is not None and not isinstance(override["debug"], Debug):
        raise TypeError(f"debug is {override['debug']!r}; allowed: None, kernelwright.simulator.Debug(…)")
    seed, processes = override.get("seed"), override.get("processes", 1)
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ValueError(f"seed is {seed!r}; allowed: None, or an integer from 0 on")
    if type(processes) is not int or processes < 1:
        raise ValueError(f"processes is {processes!r}; allowed: an integer from 1 on")


def settings() -> Settings:
    """What launches use now."""
    found = Settings()
    with _state.lock:
        for override in _state.overrides:
            found = replace(found, **override)
    return found


def last_report() -> LaunchReport | None:
    """Of the kernel that the calling thread launched last on a simulated device; None if none ran to its end."""
    return _call.reports[-1] if _call.reports else None


def last_reports() -> tuple[LaunchReport, ...]:
    """Of all kernels of the calling thread's last call: a GEMM with split K launches two."""
    return _call.reports


def run(arch: str, buffers: Sequence[Buffer], launch: Callable[[], int]) -> int:
    """Call ``launch``, whose kernels may touch exactly ``buffers``, with the device of ``arch`` as the current one.

    Returns its status. Where the simulator stopped a kernel, raises what it raised: a SimulatorError, mostly a Fault.
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
    """One launch of the runtime, in the thread that asked for it."""
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
            )
    except BaseException as error:
        _call.failure = error
        raise
    _call.reports = (*_call.reports, report)


def _executor() -> Executor:
    """The simulator of the current settings, kept for what it has decoded. Under the lock of launches."""
    wanted = settings()
    if _state.executor is None or _state.executor[0] != wanted:
        _state.executor = wanted, _simulator(wanted)
    return _state.executor[1]

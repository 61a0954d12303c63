"""Processes, on this machine or in a named environment."""

from __future__ import annotations

import dataclasses
import logging
from typing import Iterable, Mapping

from kernelwright.pants.compat import calls
from pants.engine.fs import Digest
from pants.engine.process import FallibleProcessResult, InteractiveProcess, Process, ProcessCacheScope

_logger = logging.getLogger(__name__)

# Milliseconds that a remote cache may take to answer before the process starts on this machine as well.
REMOTE_SPECULATION_MILLIS = 10_000


async def try_run(process: Process) -> FallibleProcessResult:
    """Run a process whose failure the caller explains.

    A remote cache that mixes up its entries returns a result without the requested outputs. The process is then run
    without any cache.
    """
    result = await calls.execute(process)
    if result.exit_code != 0 or not await missing_outputs(result, process.output_files):
        return result
    _logger.warning(f"A cache answered {process.description!r} with the result of another process; running it.")
    uncached = dataclasses.replace(process, cache_scope=ProcessCacheScope.PER_SESSION)
    return await calls.execute(uncached)


async def try_run_in(environment: str, origin: str, process: Process) -> FallibleProcessResult:
    """The same in an environment by its name; ``origin`` is the option that holds the name.

    Pants writes the local slot number into the command that it sends to workers, and so into the key of the result,
    which would then never be found again. A process for workers therefore has no slot variable.
    """
    name = await calls.environment(environment, origin)
    if await calls.is_remote(name):
        process = dataclasses.replace(process, execution_slot_variable=None)
    return await calls.execute_in(process, name)


async def run_in_foreground(argv: Iterable[str], env: Mapping[str, str], inputs: Digest) -> int:
    """Run a process in the root of the workspace with the terminal and its interrupts; returns its exit code."""
    process = InteractiveProcess(argv, env=env, input_digest=inputs, run_in_workspace=True)
    result = await calls.run_interactively(process)
    return result.exit_code


async def missing_outputs(result: FallibleProcessResult, outputs: Iterable[str]) -> tuple[str, ...]:
    """The files among ``outputs`` that the result lacks."""
    captured = await calls.snapshot(result.output_digest)
    return tuple(sorted(set(outputs) - set(captured.files)))

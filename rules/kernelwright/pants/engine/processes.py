"""Processes, on this machine or in a named environment."""

from __future__ import annotations

import dataclasses
import logging
from typing import Iterable

from pants.core.util_rules.environments import EnvironmentNameRequest, EnvironmentTarget, RemotePlatformField
from pants.engine.environment import EnvironmentName
from pants.engine.fs import Digest, Snapshot
from pants.engine.process import FallibleProcessResult, Process, ProcessCacheScope
from pants.engine.rules import Get

_logger = logging.getLogger(__name__)

# How long a remote cache may take to answer before the process starts on this machine as well.
REMOTE_SPECULATION_MILLIS = 10_000


async def try_run(process: Process) -> FallibleProcessResult:
    """Run a process whose failure the caller explains.

    A remote cache that confuses its entries returns a result without the outputs that were asked for. Then the process
    runs without any cache.
    """
    result = await Get(FallibleProcessResult, Process, process)
    if result.exit_code != 0 or not await missing_outputs(result, process.output_files):
        return result
    _logger.warning(f"A cache answered {process.description!r} with the result of another process; running it.")
    uncached = dataclasses.replace(process, cache_scope=ProcessCacheScope.PER_SESSION)
    return await Get(FallibleProcessResult, Process, uncached)


async def try_run_in(environment: str, origin: str, process: Process) -> FallibleProcessResult:
    """The same in an environment by its name; ``origin`` is the option that holds the name.

    Pants writes the number of the local slot into the command that it sends to workers, and so into the key of the
    result, which nothing would ever look up again. A process for workers therefore has no slot variable.
    """
    name = await Get(EnvironmentName, EnvironmentNameRequest(environment, description_of_origin=origin))
    target = await Get(EnvironmentTarget, EnvironmentName, name)
    if target.val is not None and target.val.has_field(RemotePlatformField):
        process = dataclasses.replace(process, execution_slot_variable=None)
    return await Get(FallibleProcessResult, {process: Process, name: EnvironmentName})


async def missing_outputs(result: FallibleProcessResult, outputs: Iterable[str]) -> tuple[str, ...]:
    """The files among ``outputs`` that the result lacks."""
    found = await Get(Snapshot, Digest, result.output_digest)
    return tuple(sorted(set(outputs) - set(found.files)))

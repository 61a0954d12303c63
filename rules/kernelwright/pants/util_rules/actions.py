"""Runs the actions of a compile plan, each as one sandboxed, cacheable process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

from kernelwright.pants import damaged_store
from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests, processes, progress
from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.subsystems.actions import ActionsSubsystem
from kernelwright.pants.util_rules import codegen, slots, trees
from kernelwright.pants.util_rules.codegen import ModuleRequest
from kernelwright.pants.util_rules.trees import TreeRequest
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.process import FallibleProcessResult, Process
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel


class ActionFailed(Exception):
    """A command of a plan failed; the text holds all of its output."""


@dataclass(frozen=True)
class Action:
    """One command: the counterpart of ``kernelwright.codegen.actions.Action`` on this side of the process boundary."""

    id: str
    description: str
    argv: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    trees: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    caches: tuple[str, ...]
    memory_mb: int

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Action:
        """Make an action from the plan's JSON."""
        return cls(
            id=data["id"],
            description=data["description"],
            argv=tuple(data["argv"]),
            inputs=tuple(data["inputs"]),
            outputs=tuple(data["outputs"]),
            trees=tuple(data["trees"]),
            env=tuple((name, value) for name, value in data["env"]),
            caches=tuple(data["caches"]),
            memory_mb=data["memory_mb"],
        )


@dataclass(frozen=True)
class ActionsRequest:
    """Rendered files, actions ordered so that each finds its inputs, and the outputs to keep.

    ``part`` is the subject of progress reports. A kernel of two libraries is two requests, whose processes are the
    same.
    """

    files: tuple[tuple[str, str], ...]
    actions: tuple[Action, ...]
    keep: tuple[str, ...]
    inputs: Digest = EMPTY_DIGEST
    part: Optional[progress.Part] = None


@dataclass(frozen=True)
class ActionOutputs:
    """The kept files, and the seconds that the processes took when they ran, None if unknown."""

    digest: Digest
    seconds: Optional[float] = field(default=None, compare=False)


@dataclass(frozen=True)
class _OneAction:
    action: Action
    inputs: Digest
    part: Optional[progress.Part] = None


async def _with_compilers(request: _OneAction, subsystem: ActionsSubsystem) -> FallibleProcessResult:
    action = request.action
    mounted = await concurrently(trees.prepare_tree(TreeRequest(name), **implicitly()) for name in action.trees)
    slot = slots.waiting(action.argv, action.memory_mb)
    caches = {f"kernelwright_{cache}": f"__cache_{cache}" for cache in action.caches}
    process = Process(
        slot.argv,
        description=action.description,
        input_digest=await digests.with_checksums(request.inputs),
        immutable_input_digests={tree.mount: tree.digest for tree in mounted},
        env=dict(action.env),
        append_only_caches={**caches, **slot.caches},
        execution_slot_variable=slot.variable,
        output_files=action.outputs,
        level=LogLevel.DEBUG,
        remote_cache_speculation_delay_millis=processes.REMOTE_SPECULATION_MILLIS,
    )
    if subsystem.environment is None:
        return await processes.try_run(process)
    return await processes.try_run_in(subsystem.environment, "[kernelwright-actions].environment", process)


async def _with_generator(action: Action, inputs: Digest) -> FallibleProcessResult:
    """Run a module of the generator with its Python, in the generator's environment."""
    _, _, module, *arguments = action.argv
    run = ModuleRequest(module, tuple(arguments), inputs, action.outputs, action.description, action.env)
    return (await codegen.run_module(run, **implicitly())).process


@rule(desc="Run an action of a compile plan", level=LogLevel.DEBUG)
async def run_action(request: _OneAction, subsystem: ActionsSubsystem) -> ActionOutputs:
    action = request.action
    with progress.at_work(request.part):
        if action.argv[0] == generator_data()["python"]["word"]:
            result = await _with_generator(action, request.inputs)
        else:
            result = await _with_compilers(request, subsystem)
    damaged_store.check_inputs(result.exit_code, result.stderr, action.description)
    if result.exit_code != 0:
        output = (result.stderr + result.stdout).decode(errors="replace").strip()
        raise ActionFailed(f"{action.description} failed with exit code {result.exit_code} ({action.id}):\n{output}")
    missing = await processes.missing_outputs(result, action.outputs)
    if missing:
        raise ActionFailed(f"{action.description} did not write {', '.join(missing)} ({action.id})")
    elapsed = result.metadata.total_elapsed_ms
    return ActionOutputs(result.output_digest, None if elapsed is None else elapsed / 1000)


@rule(desc="Run a compile plan", level=LogLevel.DEBUG)
async def run_actions(request: ActionsRequest) -> ActionOutputs:
    rendered = await digests.create((path, text.encode()) for path, text in request.files)
    available = await digests.merge([rendered, request.inputs])
    seconds: Optional[float] = 0.0
    for action in request.actions:
        inputs = await digests.subset(available, action.inputs)
        outputs = await run_action(_OneAction(action, inputs, request.part), **implicitly())
        available = await digests.merge([available, outputs.digest])
        seconds = None if seconds is None or outputs.seconds is None else seconds + outputs.seconds
    return ActionOutputs(await digests.subset(available, request.keep), seconds)


def rules() -> list[object]:
    return [*collect_rules()]

"""``bench``: builds libraries through the graph, and lets the tile engine measure their kernels.

The engine runs in the foreground, so that its progress is visible, Ctrl-C reaches it, and nothing is cached.
"""

from __future__ import annotations

from kernelwright.pants.compat import goal_rule, implicitly
from kernelwright.pants.engine import digests, processes
from kernelwright.pants.engine.exit_codes import BAD_INPUT, BadInput
from kernelwright.pants.goals import bench_engine
from kernelwright.pants.goals.bench_engine import TileEngineRequest
from kernelwright.pants.targets.kernel_library import LibraryKernelsField, LibraryNameField
from kernelwright.pants.util_rules.codegen import ArchsRequest, list_archs
from kernelwright.pants.util_rules.library import build_requested, library_request
from pants.engine.console import Console
from pants.engine.env_vars import CompleteEnvironmentVars
from pants.engine.fs import Workspace
from pants.engine.goal import Goal, GoalSubsystem
from pants.engine.rules import collect_rules
from pants.engine.target import Target, Targets
from pants.option.option_types import ArgsListOption, StrOption
from pants.util.strutil import softwrap

_LIBRARY = "__library"
_KINDS = ("cpu", "cuda")
"""Devices that can be timed, besides simulated ones; ``sim:ARCH`` names its own architecture."""


class BenchSubsystem(GoalSubsystem):
    name = "bench"
    help = softwrap(
        """
        Measure every kernel of `kernel_library` targets on problems, with `kernelwright tile-engine bench`, into a CSV
        file for each. Only what the device runs is built. Exit code 3 if a result was wrong, 1 if a kernel failed. See
        docs/tile_engine.md.
        """
    )

    problems = StrOption(
        default=None, help="A key of `kernelwright tile-engine problems`, such as gemm-held-out-bf16, or a JSON file."
    )
    device = StrOption(default="cpu", help="cpu, cuda:N or sim:ARCH.")
    output = StrOption(
        default=None, help="The CSV file [default: dist/bench/<path and name of the target, with dots>.csv]."
    )
    args = ArgsListOption(
        example="--duration 1 --resume",
        passthrough=True,
        extra_help="They are options of `kernelwright tile-engine bench`.",
    )


class Bench(Goal):
    subsystem_cls = BenchSubsystem
    environment_behavior = Goal.EnvironmentBehavior.LOCAL_ONLY


@goal_rule
async def bench(
    targets: Targets,
    options: BenchSubsystem,
    console: Console,
    workspace: Workspace,  # Pants requires it for rules with effects
    env: CompleteEnvironmentVars,
) -> Bench:
    libraries = [one for one in targets if one.has_field(LibraryKernelsField) and one.has_field(LibraryNameField)]
    if not libraries:
        console.print_stderr("No kernel_library targets were named; try `./pants bench kernels/gemm:cpu_gemm`.")
        return Bench(exit_code=BAD_INPUT)
    kind, simulated = device_of(options.device)
    if not options.problems:
        raise BadInput("--bench-problems is missing; allowed: a key such as gemm-held-out-bf16, or a JSON file")
    if options.output and len(libraries) > 1:
        raise BadInput(
            f"--bench-output names one file for {len(libraries)} libraries; leave it out, or name one library"
        )
    archs = frozenset([simulated]) if simulated else (await list_archs(ArchsRequest(kind), **implicitly())).names
    codes = []
    for library in libraries:
        requested = (await library_request(library)).of(archs, options.device)
        built = await build_requested(requested)
        merged = await digests.merge(one.digest for one in built.libraries)
        arguments = (
            *("bench", "--library", f"{{chroot}}/{_LIBRARY}", "--device", options.device),
            *("--problems", options.problems, "--output", options.output or default_output(library), *options.args),
        )
        inputs = await digests.add_prefix(merged, _LIBRARY)
        engine_command = await bench_engine.command_of(TileEngineRequest(arguments, inputs), **implicitly())
        command = engine_command.command
        codes.append(await processes.run_in_foreground(command.argv, {**env, **command.env}, command.inputs))
    return Bench(exit_code=max(codes))


def device_of(device: str) -> tuple[str, str]:
    """The kind of a device, and the architecture of a simulated one. Raises BadInput for one that is not timed."""
    kind, _, which = device.partition(":")
    if kind == "sim" and which:
        return kind, which
    if kind not in _KINDS:
        raise BadInput(f"--bench-device is {device!r}; allowed: cpu, cuda:N, sim:ARCH")
    return kind, ""


def default_output(library: Target) -> str:
    """Return ``dist/bench/<path and name of the target>.csv``, with dots for slashes."""
    address = library.address
    return f"dist/bench/{address.spec_path.replace('/', '.')}.{address.target_name}.csv".replace("bench/.", "bench/")


def rules() -> list[object]:
    return [*collect_rules()]

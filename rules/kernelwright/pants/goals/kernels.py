"""``kernels``: list, count, filter and export the kernels behind targets; compile them only to report what they use."""

from __future__ import annotations

import json

from kernelwright.pants.compat import goal_rule, implicitly
from kernelwright.pants.engine import digests
from kernelwright.pants.engine.dist_paths import checked_dist_path
from kernelwright.pants.engine.exit_codes import BAD_INPUT
from kernelwright.pants.util_rules import compile_commands, kernels, resource_report
from kernelwright.pants.util_rules.compile_commands import FOLDER, CompileCommandsRequest
from kernelwright.pants.util_rules.kernels import ExpandedKernel, ExpandRequest, kernel_of_target
from kernelwright.pants.util_rules.resource_report import ResourceReportRequest
from pants.base.build_root import BuildRoot
from pants.engine.console import Console
from pants.engine.fs import Workspace
from pants.engine.goal import Goal, GoalSubsystem
from pants.engine.rules import collect_rules
from pants.engine.target import Targets
from pants.option.option_types import BoolOption, StrOption
from pants.util.strutil import softwrap


class KernelsSubsystem(GoalSubsystem):
    name = "kernels"
    help = "List the kernels of targets: of single kernels such as `gemm_kernel`, and of `kernel_set` targets."

    list = BoolOption(default=False, help="Print architecture, name and identity of each kernel. The default.")
    count = BoolOption(default=False, help="Print the number of kernels of each architecture.")
    report = BoolOption(
        default=False,
        help=softwrap(
            """
            Print registers, LDS, spills, occupancy, matrix instructions, code size and compile seconds of each kernel.
            Compiles kernels that have not been compiled yet. See docs/resources.md.
            """
        ),
    )
    filter = StrOption(default=None, help="Keep kernels for which the expression holds, e.g. `c.tile_n >= 128`.")
    export_json = StrOption(
        default=None,
        help="Write the kernels with their complete specs to this file in `dist` (`--kernels-export-json`).",
    )
    compile_commands = BoolOption(
        default=False,
        help=softwrap(
            f"""
            Write `compile_commands.json` for clangd and other editors to the root of the workspace, and the generated
            headers and the toolchains' headers to `{FOLDER}`.
            """
        ),
    )


class Kernels(Goal):
    subsystem_cls = KernelsSubsystem
    environment_behavior = Goal.EnvironmentBehavior.LOCAL_ONLY


@goal_rule
async def list_kernels(
    targets: Targets, options: KernelsSubsystem, console: Console, workspace: Workspace, build_root: BuildRoot
) -> Kernels:
    exported_path = options.export_json and checked_dist_path(options.export_json, "--kernels-export-json")
    target_kernels = sorted(
        (kernel for kernel in map(kernel_of_target, targets) if kernel is not None), key=lambda kernel: kernel["origin"]
    )
    if not target_kernels:
        console.print_stderr("No kernel targets were named; try `./pants kernels ::`.")
        return Kernels(exit_code=BAD_INPUT)
    unique = {json.dumps({**kernel, "origin": None}, sort_keys=True): kernel for kernel in reversed(target_kernels)}
    body: dict[str, object] = {"stage": "expand", "kernels": sorted(unique.values(), key=lambda k: k["origin"])}
    if options.filter:
        body["filter"] = options.filter
    request = ExpandRequest(json.dumps(body, sort_keys=True), "the kernels goal")
    expanded = (await kernels.expand_kernels(request, **implicitly())).kernels
    if exported_path:
        exported = [
            {"name": kernel.name, "identity": kernel.identity, **json.loads(kernel.canonical)} for kernel in expanded
        ]
        text = json.dumps({"kernels": exported}, indent=1) + "\n"
        workspace.write_digest(await digests.create([(f"dist/{exported_path}", text.encode())]))
        console.print_stderr(f"Wrote {len(expanded)} kernels to dist/{exported_path}.")
    if options.compile_commands:
        texts = tuple(_request(kernel, str(number)) for number, kernel in enumerate(expanded))
        commands = await compile_commands.compile_commands(
            CompileCommandsRequest(texts, build_root.path), **implicitly()
        )
        workspace.write_digest(commands.digest)
        console.print_stderr(f"Wrote {commands.count} commands to compile_commands.json.")
    if options.count:
        archs = [kernel.arch for kernel in expanded]
        for arch in sorted(set(archs)):
            console.print_stdout(f"{arch} {archs.count(arch)}")
    if options.report:
        asked = ResourceReportRequest(tuple(kernel.canonical for kernel in expanded))
        report = await resource_report.report_resources(asked, **implicitly())
        console.print_stdout(report.text)
    if options.list or not (options.count or options.export_json or options.compile_commands or options.report):
        for kernel in expanded:
            console.print_stdout(f"{kernel.arch} {kernel.name} {kernel.identity}")
    return Kernels(exit_code=0)


def _request(kernel: ExpandedKernel, origin: str) -> str:
    return json.dumps({**json.loads(kernel.canonical), "origin": origin}, sort_keys=True)


def rules() -> list[object]:
    return [*collect_rules()]

"""The architectures of a library, and the kernels of each, build side by side in one call."""

from __future__ import annotations

from pathlib import Path

from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import actions, codegen, library, toolchains, trees
from kernelwright.pants.util_rules.actions import Action, ActionsRequest
from kernelwright.pants.util_rules.actions_test import one_file_tree, shell_as_module
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from kernelwright.pants.util_rules.library import BuiltLibraries, PlannedGroup, PlannedLibraries, PlannedLibrary
from kernelwright.pants.util_rules.slots_test import meeting, most_at_once
from kernelwright.pants.util_rules.toolchains import Toolchain, Toolchains
from kernelwright.pants.util_rules.trees import Materials, MaterialsRequest
from pants.engine.fs import DigestContents
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner

ARCHS = ("gfx942", "x86_64_v3")


@in_place_of(codegen.run_codegen)
async def no_generator(request: CodegenRequest) -> CodegenResponse:
    return CodegenResponse('{"manifest.json": "{}"}')


@in_place_of(toolchains.choose_toolchains)
async def no_toolchains() -> Toolchains:
    return Toolchains(Toolchain("zig"), Toolchain("wheel"), Toolchain("clang"))


@in_place_of(trees.name_materials)
async def no_materials(request: MaterialsRequest) -> Materials:
    return Materials("[]")


def action(output: str, inputs: tuple[str, ...], argv: tuple[str, ...]) -> Action:
    return Action(output, f"Make {output}", argv, inputs, (output,), (), (), (), 1)


def planned(arch: str, log: Path) -> PlannedLibrary:
    objects = tuple(f"{arch}/k{n}.o" for n in range(2))
    shared = f"{arch}/libx.so"
    kernels = tuple(ActionsRequest((), (action(name, (), meeting(name, log, 4)),), (name,)) for name in objects)
    link = ActionsRequest((), (action(shared, objects, ("/bin/sh", "-c", ": >$0", shared)),), (shared,))
    return PlannedLibrary(arch, "{}", shared, (), (), (PlannedGroup(kernels, None, f"libx.so for {arch}"),), link)


def test_architectures_and_kernels_build_side_by_side(tmp_path: Path) -> None:
    rules = [
        *actions.rules(),
        *library.rules(),
        one_file_tree,
        shell_as_module,
        no_generator,
        no_toolchains,
        no_materials,
    ]
    runner = RuleRunner(
        rules=[*rules, QueryRule(BuiltLibraries, (PlannedLibraries,))],
        bootstrap_args=["--process-execution-local-parallelism=4"],
    )
    log = tmp_path / "log"
    request = PlannedLibraries(tuple(planned(arch, log) for arch in ARCHS))
    built = runner.request(BuiltLibraries, [request])
    assert tuple(one.arch for one in built.libraries) == ARCHS
    files = [file.path for one in built.libraries for file in runner.request(DigestContents, [one.digest])]
    assert files == [f"{arch}/{name}" for arch in ARCHS for name in ("libx.so", "manifest.json")]
    assert most_at_once(log) == 4

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.pants.engine import digests
from kernelwright.pants.engine.portable import ForegroundCommand
from kernelwright.pants.goals import bench as bench_goal
from kernelwright.pants.goals import bench_engine
from kernelwright.pants.goals.bench import Bench, device_of
from kernelwright.pants.goals.bench_engine import TileEngineCommand, TileEngineRequest
from kernelwright.pants.targets.kernel_library import KernelLibraryTarget
from kernelwright.pants.targets.operation_kernels import kernel_target
from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import codegen, library
from kernelwright.pants.util_rules.codegen import Archs, ArchsRequest
from kernelwright.pants.util_rules.library import BuiltLibraries, BuiltLibrary, LibraryRequest, PlannedLibraries
from pants.engine.internals.scheduler import ExecutionError
from pants.testutil.rule_runner import RuleRunner, mock_console
from pants.util.frozendict import FrozenDict

GemmKernelTarget = kernel_target("gemm")

# In place of the tile engine: says where it runs, what it got and what it found, and ends as it was told.
ENGINE = """
import json, os, sys
library = sys.argv[sys.argv.index("--library") + 1]
found = [os.path.join(where, name) for where, _, names in os.walk(library) for name in names]
output = sys.argv[sys.argv.index("--output") + 1]
os.makedirs(os.path.dirname(output), exist_ok=True)
open(output, "w").write(json.dumps({"argv": sys.argv[1:], "found": [one[len(library):] for one in found]}))
sys.exit(int(os.environ["ENGINE_CODE"]))
"""
BUILD = """
gemm_kernel(name="cpu", arch="x86_64_v3", dtype="fp32", layout="rrr")
gemm_kernel(name="gpu", arch="gfx942", dtype="fp16")
kernel_library(name="lib", dependencies=[":cpu", ":gpu"])
kernel_library(name="other", dependencies=[":cpu"])
"""


@in_place_of(library.plan_library)
async def fake_plan(request: LibraryRequest) -> PlannedLibraries:
    assert request.archs == {"x86_64_v3"}  # nothing is built for what is not measured
    return PlannedLibraries(())


@in_place_of(library.build_libraries)
async def fake_build(request: PlannedLibraries) -> BuiltLibraries:
    return BuiltLibraries((BuiltLibrary("x86_64_v3", await digests.create([("x86_64_v3/manifest.json", b"{}")])),))


@in_place_of(codegen.list_archs)
async def fake_archs(request: ArchsRequest) -> Archs:
    return Archs(frozenset({"cpu": ["x86_64_v3"], "cuda": ["sm_90a"]}[request.kind]))


@in_place_of(bench_engine.command_of)
async def fake_engine(request: TileEngineRequest) -> TileEngineCommand:
    argv = (sys.executable, "-c", ENGINE, *request.arguments)
    return TileEngineCommand(ForegroundCommand(argv, FrozenDict({"PYTHONPATH": ""}), request.inputs))


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> RuleRunner:
    runner = RuleRunner(
        rules=[*bench_goal.rules(), fake_plan, fake_build, fake_archs, fake_engine],
        target_types=[GemmKernelTarget, KernelLibraryTarget],
    )
    runner.write_files({"src/k/BUILD": BUILD})
    monkeypatch.chdir(runner.build_root)  # as Pants itself does
    return runner


def bench(runner: RuleRunner, *args: str, code: int = 0) -> int:
    with mock_console(runner.options_bootstrapper):
        return runner.run_goal_rule(Bench, args=args, env={"ENGINE_CODE": str(code)}, env_inherit={"PATH"}).exit_code


def test_the_engine_gets_the_library_and_its_code_counts(runner: RuleRunner) -> None:
    assert bench(runner, "--problems=gemm-tuning-fp32", "--args=--duration 1", "src/k:lib", code=3) == 3
    said = json.loads(Path(runner.build_root, "dist/bench/src.k.lib.csv").read_text())
    assert said["found"] == ["/x86_64_v3/manifest.json"]
    argv = said["argv"]
    assert argv[:2] == ["bench", "--library"] and argv[-2:] == ["--duration", "1"]
    assert argv[3:-2] == [
        *("--device", "cpu", "--problems", "gemm-tuning-fp32", "--output", "dist/bench/src.k.lib.csv"),
    ]


def test_several_libraries_have_files_of_their_own(runner: RuleRunner) -> None:
    assert bench(runner, "--problems=p.json", "src/k:lib", "src/k:other") == 0
    written = sorted(path.name for path in Path(runner.build_root, "dist/bench").iterdir())
    assert written == ["src.k.lib.csv", "src.k.other.csv"]
    with pytest.raises(ExecutionError, match="--bench-output names one file for 2 libraries"):
        bench(runner, "--problems=p.json", "--output=x/t.csv", "src/k:lib", "src/k:other")


def test_bad_input_says_what_is_allowed(runner: RuleRunner) -> None:
    assert bench(runner, "--problems=p.json", "src/k:cpu") == 2
    with pytest.raises(ExecutionError, match="--bench-problems is missing"):
        bench(runner, "src/k:lib")
    with pytest.raises(ExecutionError, match="--bench-device is 'hip:0'; allowed: cpu, cuda:N, sim:ARCH"):
        bench(runner, "--problems=p.json", "--device=hip:0", "src/k:lib")
    with pytest.raises(ExecutionError, match="src/k:other has no kernel for cuda:0; it has x86_64_v3"):
        bench(runner, "--problems=p.json", "--device=cuda:0", "src/k:other")


def test_a_simulated_device_names_its_architecture() -> None:
    assert device_of("sim:gfx942") == ("sim", "gfx942")
    assert device_of("cuda:1") == ("cuda", "") and device_of("cpu") == ("cpu", "")

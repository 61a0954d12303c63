from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.codegen.interface import exit_codes
from kernelwright.codegen.trees import all_trees
from kernelwright.codegen.violations import IllegalKernelError, SpecError
from kernelwright.dispatch import Device, GemmProblem, ProblemError
from kernelwright.jit import JitDisabledError, Registry, ToolchainError, UntrustedCacheError, command

AMD = Device("hip:0", arch="gfx942")
SPEC = {
    "op": "gemm",
    "dtype": "bf16",
    "layout": "rcr",
    "tile": [128, 128, 32],
    "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16],
}


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    """Own sources, so that plans have keys; no compiler."""
    own = {name: tree for name, tree in all_trees().items() if tree.own}
    for part in (part for tree in own.values() for part in tree.parts):
        path = tmp_path / "own" / part.replace("*", "any")
        path = path if path.suffix else path / "kernel.hpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(part)
    return dict.fromkeys(own, tmp_path / "own")


def test_kernels_come_from_specs_sets_and_configurations(tmp_path: Path, sources: dict[str, Path]) -> None:
    registry = Registry(AMD, cache=tmp_path / "cache", trees=sources)
    kernel = registry.add(SPEC, pipeline="compv3", limits={"max_vgpr_spills": 0})
    essential = registry.add_set("gemm:essential", filter="c.dtype_a == 'bf16'")
    assert essential and kernel in registry.kernels and set(essential) <= set(registry.kernels)
    config = {
        "op": "gemm",
        "problem": {"dtype": "fp16", "layout": "rcr"},
        "tile_config": {key: {"values": [SPEC[key]]} for key in ("tile", "wave", "warp_tile")},
        "trait_config": {"pipeline": {"values": ["compv3", "compv4"]}},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    added = registry.add_config(tmp_path / "config.json")
    assert len(added) == 2 and registry.add_config(config) == added
    names = [one.name for one in registry.kernels]
    assert names == sorted(set(names))
    assert registry.missing() == registry.kernels


def test_kernels_come_from_problems(tmp_path: Path, sources: dict[str, Path]) -> None:
    registry = Registry(AMD, cache=tmp_path / "cache", trees=sources)
    (plain,) = registry.add_problems([GemmProblem(512, 512, 512, dtype="bf16")])
    fused = registry.add_problems([GemmProblem(512, 512, 512, dtype="bf16", num_d=1, activation="gelu")])
    assert "_rcr_" in plain.name and ["_Gelu_d1" in one.name for one in fused] == [True]
    assert set(registry.kernels) == {plain, *fused}
    trace = {"version": 1, "problems": [{"op": "gemm", "arch": "any", "problem": {"m": 64, "n": 64, "k": 64}}]}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    (from_file,) = registry.add_problems(tmp_path / "trace.json")
    assert from_file.name.startswith("gemm_fp32_")
    with pytest.raises(SpecError, match="the trace holds no problem"):
        registry.add_problems([])
    with pytest.raises(ProblemError, match=r"problem is a int; allowed: .*GemmProblem"):
        registry.add_problems([3])  # type: ignore[list-item]
    assert repr(registry) == f"<Registry jit on hip:0: {len(registry.kernels)} kernels for gfx942>"


def test_what_is_wrong_is_refused_when_it_is_added(tmp_path: Path) -> None:
    registry = Registry(AMD, cache=tmp_path)
    with pytest.raises(IllegalKernelError, match=r"gemm\.warp_tile_set"):
        registry.add(SPEC, warp_tile=[128, 128, 32], pipeline="compv3")
    with pytest.raises(SpecError, match="unknown field 'tyle'"):
        registry.add(SPEC, tyle=3)
    with pytest.raises(SpecError, match="unknown limit"):
        registry.add(SPEC, pipeline="compv3", limits={"max_speed": 3})
    with pytest.raises(SpecError, match="has no kernels"):
        registry.build()
    assert not registry.kernels and not list(tmp_path.iterdir())
    with pytest.raises(SpecError, match="no kernels exist for gfx803"):
        Registry(Device("hip:0", arch="gfx803"))


def test_off_lists_what_would_be_compiled(
    tmp_path: Path, sources: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(AMD, cache=tmp_path / "cache", trees=sources)
    kernels = [registry.add(SPEC, pipeline=pipeline) for pipeline in ("compv3", "compv4")]
    with pytest.raises(ToolchainError, match=r"pip install 'kernelwright\[jit"):
        registry.build()
    monkeypatch.setenv("KERNELWRIGHT_JIT", "off")
    with pytest.raises(JitDisabledError) as caught:
        registry.build()
    assert set(caught.value.missing) == {kernel.name for kernel in kernels} and caught.value.arch == "gfx942"
    assert all(f"\n  {kernel.name}" in str(caught.value) for kernel in kernels)
    monkeypatch.setenv("KERNELWRIGHT_JIT", "no")
    with pytest.raises(SpecError, match="KERNELWRIGHT_JIT is 'no'; allowed: on, off"):
        registry.build()


def test_a_cache_that_others_can_write_is_refused(
    tmp_path: Path, sources: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "shared/cache"
    (cache / "libraries").mkdir(parents=True)
    registry = Registry(AMD, cache=cache, trees=sources)
    registry.add(SPEC, pipeline="compv3")
    assert registry.missing() == registry.kernels
    cache.parent.chmod(0o777)
    for refused in (registry.missing, registry.build):
        with pytest.raises(
            UntrustedCacheError, match=r"shared can be written by all users.*KERNELWRIGHT_SHARED_CACHE=on"
        ):
            refused()
    (tmp_path / "spec.json").write_text(json.dumps({**SPEC, "pipeline": "compv3"}))
    (tmp_path / "trees.json").write_text(json.dumps({name: str(folder) for name, folder in sources.items()}))
    monkeypatch.setenv("KERNELWRIGHT_TREES", str(tmp_path / "trees.json"))
    arguments = ["--device", "hip:0", "--arch", "gfx942", "--spec", str(tmp_path / "spec.json"), "--cache", str(cache)]
    assert command.main(arguments) == exit_codes.EXIT_BAD_INPUT
    assert "can be written by all users" in capsys.readouterr().err

    told = Registry(AMD, cache=cache, shared_cache=True, trees=sources)
    told.add(SPEC, pipeline="compv3")
    assert told.missing() == told.kernels
    monkeypatch.setenv("KERNELWRIGHT_SHARED_CACHE", "on")
    by_environment = Registry(AMD, cache=cache, trees=sources)
    by_environment.add(SPEC, pipeline="compv3")
    assert by_environment.missing() == by_environment.kernels

"""docs/adding_an_arch.md, followed with a made-up architecture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.arch import Arch, model
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.operations.gemm.arch_section import GemmSection, PipelineLimits
from kernelwright.codegen.planning.compile_plan import kernel_actions
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import IllegalKernelError

REPOSITORY = Path(__file__).parents[4]
SPEC: dict[str, Any] = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": [128, 128, 32],
    "wave": [3, 2, 1],
    "warp_tile": [16, 16, 32],
    "pipeline": "compv3",
}


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """gfx942 with six waves and a larger LDS, under another name."""
    monkeypatch.setattr(model, "_registered", {})
    data = json.loads((Path(model.__file__).parents[1] / "files/archs/gfx942.json").read_text())
    data |= {"name": "gfx999", "description": "made up", "lds_bytes": 131072}
    data["operations"]["gemm"]["waves"] = [[3, 2, 1], [2, 2, 1]]
    data["operations"]["gemm"]["pipelines"]["compv3"]["lds_bytes"] = 131072
    path = tmp_path / "gfx999.json"
    path.write_text(json.dumps(data))
    return path


def test_its_own_limits_are_the_ones_that_count(made_up: Path) -> None:
    arch = archs.load_file(made_up)
    kernel = parse_kernel({**SPEC, "wave": [2, 2, 1]}, arch)
    assert kernel.arch == "gfx999" and kernel.identity != parse_kernel({**SPEC, "wave": [2, 2, 1]}, _gfx942()).identity
    with pytest.raises(IllegalKernelError, match=r"gemm\.divisibility: tile\.m = 128: wave\.m \* warp_tile\.m = 48"):
        parse_kernel(SPEC, arch)
    with pytest.raises(IllegalKernelError, match=r"gemm\.wave_set: wave = 3x2x1: gfx942"):
        parse_kernel(SPEC, _gfx942())


def test_the_command_line_lists_and_renders_for_it(
    made_up: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"op": "gemm", "problem": {**SPEC, "wave": [2, 2, 1]}, "tile_config": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    options = ["--arch-file", str(made_up), "--arch", "gfx999", "--config", str(tmp_path / "config.json")]
    assert main(["kernels", *options, "--list"]) == 0
    assert capsys.readouterr().out.startswith("gfx999 gemm_fp16_rcr_compv3_")
    assert main(["render", *options, "--out", str(tmp_path / "headers")]) == 0
    assert any("gfx999" in path.read_text() for path in (tmp_path / "headers/gfx999").glob("*.hpp"))


def test_facts_of_the_hardware_are_read_from_the_file(made_up: Path) -> None:
    """Rules ask the file for what the hardware can do, never for the name of an architecture."""
    data = json.loads(made_up.read_text())
    raw = {**SPEC, "wave": [2, 2, 1], "tile": [128, 128, 64], "pipeline": "comp_async", "pad": [True, True, False]}
    raw |= {"scheduler": "intrawave", "epilogue": "cshuffle"}
    data["operations"]["gemm"]["pipelines"]["comp_async"] = data["operations"]["gemm"]["pipelines"]["compv4"]
    made_up.write_text(json.dumps(data))
    with pytest.raises(IllegalKernelError, match=r"ck_tile\.comp_async: .*gfx999 has no loads of 16 bytes"):
        parse_kernel(raw, archs.load_file(made_up))
    made_up.write_text(json.dumps({**data, "wide_direct_lds_loads": True}))
    assert parse_kernel(raw, archs.load_file(made_up)).arch == "gfx999"
    data["operations"]["gemm"]["emulated_dtypes"] = ["fp16"]
    made_up.write_text(json.dumps({**data, "wide_direct_lds_loads": True}))
    with pytest.raises(IllegalKernelError, match=r"ck_tile\.dtypes: dtype_a = fp16: CK Tile emulates it"):
        parse_kernel(raw, archs.load_file(made_up))


def test_a_cpu_is_one_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_registered", {})
    data = json.loads((Path(model.__file__).parents[1] / "files/archs/x86_64_v4.json").read_text())
    data |= {"name": "x86_64_v9", "target": "x86_64_v4"}
    data["cpu"] |= {"vector_registers": 64, "vector_lanes": 32, "features": {"amx_bf16": "amx-bf16"}}
    gemm = data["operations"]["gemm"]
    gemm["feature_needs"] = [{"feature": "amx_bf16", "dtypes": "bf16_bf16_fp32", "warp_tile_k": 2}]
    gemm["warp_tiles"] = {key: [[40, 32, [1, 2]]] for key in gemm["warp_tiles"]}
    (tmp_path / "arch.json").write_text(json.dumps(data))
    arch = archs.load_file(tmp_path / "arch.json")
    archs.register(arch)
    tile = {"tile": [80, 4096, 512], "warp_tile": [40, 32, 2]}
    kernel = parse_kernel({"op": "gemm", "dtype": "bf16", "layout": "rcr", **tile}, arch)
    made = kernel_actions(kernel, arch, backend_for(arch, {}))
    assert "-mcpu=x86_64_v4+amx-bf16" in made.actions[0].argv
    assert "::kernel(kAmxBf16," in made.files[0].text
    with pytest.raises(IllegalKernelError, match="a vector of x86_64_v4 has 32 lanes"):
        parse_kernel({"op": "gemm", "dtype": "bf16", "layout": "rcr", **tile, "warp_tile": [40, 16, 2]}, arch)


def test_a_name_that_ships_cannot_be_taken(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write_text(made_up.read_text().replace("gfx999", "gfx942"))
    assert main(["kernels", "--arch-file", str(made_up), "--arch", "gfx942", "--set", "gemm:essential"]) == 2
    assert "an arch named 'gfx942' exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chosen", "operation"),
    [("fmha_essential", "attention"), ("conv_essential", "convolution"), ("fp16_rcr_latency", "gemm")],
)
def test_sets_leave_out_an_architecture_without_their_operation(
    chosen: str, operation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--set`` without ``--arch`` is for every architecture that has such kernels."""
    mine = {"like": "sm_90a", "name": "mine", "operations": {operation: None}}
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    monkeypatch.setenv("KERNELWRIGHT_ARCH_PATH", str(tmp_path))
    assert main(["kernels", "--set", chosen, "--count"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "sm_90a" in listed and "mine" not in listed


def test_the_page_names_every_field() -> None:
    page = REPOSITORY / "docs/adding_an_arch.md"
    if not page.is_file():
        pytest.skip("the page is not beside the generator here")
    named = set(re.findall(r"`(\w+)`", page.read_text()))
    assert set(Arch.model_fields) - {"schema_version"} <= named
    for part in (model.CpuFacts, GemmSection, PipelineLimits):
        assert set(part.model_fields) <= named


def _gfx942() -> Arch:
    return archs.load("gfx942")

"""docs/adding_an_arch.md, followed with a made-up architecture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.arch import Arch, model
from kernelwright.codegen.cli import main
from kernelwright.codegen.specs import parse_kernel
from kernelwright.codegen.violations import IllegalKernelError

REPOSITORY = Path(__file__).parents[3]
SPEC: dict[str, Any] = {
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
    data = json.loads((Path(model.__file__).parent / "data/gfx942.json").read_text())
    data |= {"name": "gfx999", "description": "made up", "lds_bytes": 131072, "waves": [[3, 2, 1], [2, 2, 1]]}
    data["pipelines"]["compv3"]["lds_bytes"] = 131072
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
    config = {"problem": {**SPEC, "wave": [2, 2, 1]}, "tile_config": {}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    options = ["--arch-file", str(made_up), "--arch", "gfx999", "--config", str(tmp_path / "config.json")]
    assert main(["kernels", *options, "--list"]) == 0
    assert capsys.readouterr().out.startswith("gfx999 gemm_fp16_rcr_compv3_")
    assert main(["render", *options, "--out", str(tmp_path / "headers")]) == 0
    assert any("gfx999" in path.read_text() for path in (tmp_path / "headers/gfx999").glob("*.hpp"))


def test_a_name_that_ships_cannot_be_taken(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.write_text(made_up.read_text().replace("gfx999", "gfx942"))
    assert main(["kernels", "--arch-file", str(made_up), "--arch", "gfx942", "--set", "essential"]) == 2
    assert "an arch named 'gfx942' exists already" in capsys.readouterr().err


def test_the_page_names_every_field() -> None:
    page = REPOSITORY / "docs/adding_an_arch.md"
    if not page.is_file():
        pytest.skip("the page is not beside the generator here")
    named = set(re.findall(r"`(\w+)`", page.read_text()))
    assert set(Arch.model_fields) - {"schema_version"} <= named
    assert set(model.PipelineLimits.model_fields) <= named


def _gfx942() -> Arch:
    return archs.load("gfx942")

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.codegen.selecting.specs import parse_kernels
from kernelwright.codegen.testing.expansions import expand_set
from kernelwright.tile_engine.enumerating import trait_config
from kernelwright.tile_engine.interface.cli import main


@pytest.fixture(autouse=True)
def _once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trait_config, "expand_set", expand_set)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"variant": "forward", "trait_config": {"data_type": ["bf16"], "ndim_spatial": [2]}}))
    return str(path)


def enumerate_(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str], str]:
    code = main(["enumerate", *options])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_counts_and_lists_agree(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, listed, _ = enumerate_(capsys, config, "--arch", "gfx942")
    assert code == 0 and len({line.split()[1] for line in listed}) == len(listed) > 10
    assert enumerate_(capsys, config, "--arch", "gfx942", "--count-only")[1] == [str(len(listed))]
    wide = enumerate_(capsys, config, "--arch", "gfx942", "--filter", "c.tile_n >= 128", "--list")[1]
    assert set(wide) < set(listed)


def test_wildcards_and_files_of_them_choose(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patterns = tmp_path / "patterns"
    patterns.write_text("# by pipeline\n*_compv3_*\n")
    given = (config, "--arch", "gfx942", "--kernels-file", str(patterns), "--ignore-kernels", "*_64x*")
    names = [line.split()[0] for line in enumerate_(capsys, *given)[1]]
    assert names and all("_compv3_" in name and "_64x" not in name for name in names)
    patterns.write_text("# nothing\n")
    assert "lists no pattern" in enumerate_(capsys, *given)[2]


def test_no_kernel_is_an_error(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = enumerate_(capsys, config, "--arch", "gfx942", "--kernels", "nothing*")
    assert code == 2 and "none of the" in said
    code, _, said = enumerate_(capsys, config, "--arch", "gfx942", "--filter", "c.tile_m > 9999")
    assert code == 2 and "matches none of" in said
    assert enumerate_(capsys, config, "--arch", "gfx9")[0] == 2


def test_exported_specs_are_those_of_the_kernels(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "specs.json"
    code, listed, _ = enumerate_(capsys, config, "--arch", "gfx942", "--export-json", str(out), "--list")
    assert code == 0
    again = parse_kernels(json.loads(out.read_text()), load("gfx942"))
    assert sorted(f"{kernel.name} {kernel.identity}" for kernel in again) == sorted(listed)

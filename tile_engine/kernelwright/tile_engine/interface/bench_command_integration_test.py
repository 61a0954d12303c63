"""Kernels of a configuration are compiled before they are measured; KERNELWRIGHT_TREES names a JSON of tree folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.dispatch import Device
from kernelwright.tile_engine.enumerating.trait_config import enumerate_kernels
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.results.csv_file import read_rows

CONFIG = {"variant": "gemm_universal", "trait_config": {"data_type": ["fp32"], "layout": ["rrr"]}}


@pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")
def test_a_configuration_is_built_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_CACHE", str(tmp_path / "cache"))
    config, problems, table = tmp_path / "c.json", tmp_path / "p.json", tmp_path / "t.csv"
    config.write_text(json.dumps(CONFIG))
    problems.write_text(json.dumps([{"m": 33, "n": 17, "k": 65, "layout": "rrr", "dtype": "fp32"}]))
    kernels = enumerate_kernels(CONFIG, load(Device("cpu").archs[0]))
    asked = ["bench", "--config", str(config), "--workers", "2", "--problems", str(problems), "--output", str(table)]
    fast = ["--duration", "0.001", "--rounds", "1", "--kernels", kernels[0].name]
    assert main([*asked, *fast]) == 0, capsys.readouterr().err
    (row,) = read_rows(table)
    assert (row["identity"], row["status"]) == (kernels[0].identity, "ok")
    assert main([*asked, "--kernels", "nothing*"]) == 2
    assert f"none of the {len(kernels)} kernels of" in capsys.readouterr().err


def test_a_library_or_a_configuration_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--problems", "gemm-tuning-fp32", "--output", str(tmp_path / "t.csv")]) == 2
    assert "give one of --library, a folder" in capsys.readouterr().err

from __future__ import annotations

import json

import pytest

from kernelwright.arch import load
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.interface.cli_arch import PIPELINES, legal, table
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT
from kernelwright.files import arch_files


def test_what_is_legal_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arch", "gfx942"]) == 0
    lines = capsys.readouterr().out.splitlines()
    gemm = lines[lines.index("gemm") : lines.index("convolution")]
    assert lines[0] == "gfx942: AMD Instinct MI300 series; backend ck_tile"
    assert "  dtypes             fp32, fp16, bf16, fp8, bf8, fp8 x bf8, bf8 x fp8, int8" in gemm
    assert "  tile               m 16 to 512 by 16, n 16 to 512 by 16, k 8 to 256 by 8" in gemm
    assert "  warp tile fp32     16 x 16 x (4, 8, 16), 32 x 32 x (4, 8)" in gemm
    compv4 = gemm.index(f"  pipeline compv4: {PIPELINES['compv4']}")
    assert gemm[compv4 + 1] == "    schedulers       intrawave"
    norm = lines[lines.index("norm") :]
    assert norm[1] == "  kind               rms, layer"
    assert "  dtype y            fp32, int8, fp8, fp16, bf16" in norm


def test_every_architecture_is_listed_with_its_norms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arch"]) == 0
    assert "sm_90a cutlass sm_90a attention,convolution,gemm,norm: NVIDIA Hopper" in capsys.readouterr().out
    assert main(["arch", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == len(arch_files.names()) and all("norm" in one["operations"] for one in listed)


def test_the_file_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arch", "sm_90a", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    allowed = shown.pop("legal")
    assert shown == arch_files.read("sm_90a")[0]
    assert allowed["gemm"]["pipelines"]["tma"]["meaning"] == PIPELINES["tma"]
    assert "bf16" in allowed["gemm"]["dtypes"] and allowed["gemm"]["tile"] == shown["operations"]["gemm"]["tile"]
    assert allowed["norm"]["direction"] == ["forward", "backward"]
    assert main(["arch", "sm_90"]) == EXIT_BAD_INPUT
    assert "Did you mean 'sm_90a'?" in capsys.readouterr().err


def test_every_architecture_can_be_shown_and_every_pipeline_has_a_meaning() -> None:
    named = set()
    for name in arch_files.names():
        file = arch_files.read(name)[0]
        lines = list(table(file, legal(file, load(name))))
        for operation, allowed in file["operations"].items():
            assert operation in lines
            named.update(allowed["pipelines"])
        assert "{" not in "".join(lines) and "[" not in "".join(lines)
    assert named == set(PIPELINES)

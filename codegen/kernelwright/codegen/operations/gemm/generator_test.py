from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.interface.cli_generate import _repeated
from kernelwright.codegen.interface.generate import Wanted, wanted_kernels
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.operations.gemm.variants_test import CK_TILE_CONFIG
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.selecting.sets import expand_set

SHORT = {key: value for key, value in CK_TILE_CONFIG.items() if key != "problem"}  # dtype and layout come as options


def run(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> dict[str, Any]:
    """The registry that a run of the command writes."""
    assert main(["generate", "gemm", "--output-dir", str(folder), *options]) == 0
    out = capsys.readouterr().out
    assert out == f"{folder / 'registry.json'}\n"
    registry: dict[str, Any] = json.loads((folder / "registry.json").read_text())
    return registry


def wanted(known: Mapping[str, Arch], **given: Sequence[str]) -> list[Selection]:
    generator = operation("gemm").generator
    assert generator is not None
    options = {option.name: given.get(option.name, ()) for option in generator.options}
    return wanted_kernels(generator, Wanted(options, ("gfx942",)), known)


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (path.read_text(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def test_a_preselected_set_becomes_headers_and_a_registry(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--gpu-target", "gfx942", "gfx1201", "--preselected", "fp16_rcr_compute")
    registry = run(capsys, tmp_path, *options)
    wanted = [
        kernel for arch in ("gfx1201", "gfx942") for kernel in expand_set("fp16_rcr_compute", archs.load(arch)).kernels
    ]
    assert {entry["identity"] for entry in registry["kernels"]} == {kernel.identity for kernel in wanted}
    for entry in registry["kernels"]:
        kernel = Kernel.model_validate({"arch": entry["arch"], "spec": entry["spec"]})
        assert (kernel.name, kernel.identity, gemm_spec(kernel).variant) == (
            entry["name"], entry["identity"], entry["variant"],
        )  # fmt: skip
        assert kernel.symbol in (tmp_path / entry["header"]).read_text()
    sorts = [(entry["arch"], entry["name"]) for entry in registry["kernels"]]
    assert sorts == sorted(sorts)
    before = contents(tmp_path)
    headers = {entry["header"] for entry in registry["kernels"]}  # beside which lie sources for the host
    assert {path for path in before if path.endswith((".hpp", ".json"))} == {"registry.json", *headers}
    run(capsys, tmp_path, *options)
    assert contents(tmp_path) == before, "unchanged files are not written again"
    mine = tmp_path / "gfx942/mine.hpp"
    mine.write_text("// not generated")
    run(capsys, tmp_path, "--gpu-target", "gfx942", "--preselected", "fp16_rcr_compute")
    after = contents(tmp_path)
    assert all(path.startswith("gfx942/") or path == "registry.json" for path in after), "the others are stale"
    assert "gfx942/mine.hpp" in after, "what was not generated stays"


def test_options_alone_mean_the_preselected_sets(tmp_path: Path) -> None:
    known = {name: archs.load(name) for name in archs.names()}
    (chosen,) = wanted(known)
    gfx942 = known["gfx942"]
    together = {
        kernel
        for purpose in ("compute", "memory", "latency", "split_k")
        for kernel in expand_set(f"fp16_rcr_{purpose}", gfx942).kernels
    }
    assert set(chosen.kernels) == together and {gemm_spec(kernel).variant for kernel in chosen.kernels} == {"standard"}
    (several,) = wanted(known, datatype=["bf16", "fp8"], layout=["rcr", "ccr"], variants=["standard"])
    pairs = {(str(gemm_spec(kernel).dtype_a), str(gemm_spec(kernel).layout)) for kernel in several.kernels}
    assert pairs == {("bf16", "rcr"), ("bf16", "ccr"), ("fp8", "rcr"), ("fp8", "ccr")}


def test_a_familiar_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "default_config.json"
    path.write_text(json.dumps({**SHORT, "limits": {"max_vgpr_spills": 0}}))
    options = ("--gpu-target", "gfx942", "--config", str(path), "--datatype", "bf16", "--variants", "standard")
    registry = run(capsys, tmp_path / "out", *options)
    assert {entry["spec"]["dtype_a"] for entry in registry["kernels"]} == {"bf16"}
    assert all(entry["limits"] == {"max_vgpr_spills": 0} for entry in registry["kernels"])
    path.write_text(json.dumps(CK_TILE_CONFIG))  # which states fp16 and rcr
    assert run(capsys, tmp_path / "out", "--gpu-target", "gfx942", "--config", str(path))["kernels"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preselected", "fp16_rcr_esential"], "unknown kernel set 'fp16_rcr_esential' (did you mean"),
        (["--preselected", "fp32_rcr_compute", "--gpu-target", "sm_90a"], "fp32"),
        (["--config", "nowhere.json"], "cannot read 'nowhere.json': No such file"),
        (["--config", "{config}", "--preselected", "essential"], "--preselected or --config, not both"),
        (["--config", "{config}", "--datatype", "bf16"], "the configuration states dtype; leave --datatype out"),
        (["--config", "{config}", "--layout", "rrr"], "the configuration states layout; leave --layout out"),
        (["--config", "{varied}", "--variants", "standard"], "states variants; leave --variants out"),
        (["--config", "{list}"], "a configuration is an object"),
        (["--config", "{broken}"], "section 'problem' must be an object"),
        (["--config", "{none}"], "none of the 1 combinations is legal on gfx942"),
        (["--preselected", "fp16_rcr_compute", "--datatype", "bf16"], "says fp16, but --datatype bf16 was given"),
        (["--preselected", "essential", "--layout", "rcr"], "says what it holds, but --layout rcr was given"),
        (
            ["--preselected", "fp16_rcr_compute", "--variants", "batched"],
            "has no batched kernels for gfx942; it has st",
        ),
        (
            ["--preselected", "fp16_rcr_essential", "--variants", "preshuffle"],
            "it has multi_d, standard; preshuffle kernels are in fp16_rcr_preshuffle\n",
        ),
        (
            ["--preselected", "gemm:fp16_rcr_multi_d", "--variants", "standard"],
            "; standard kernels are in fp16_rcr_compute, fp16_rcr_memory, fp16_rcr_latency",
        ),
        (["--variants", "standard", "multi"], "'multi' is not one of"),
        (["--variants", "standard", "standard"], "write a list of different words"),
        (["--datatype", "fp64"], "'fp64' is not one of"),
        (["--gpu-target", "gfx943"], "unknown arch 'gfx943'"),
        (["--datatype", "fp8", "--gpu-target", "x86_64_v4"], "x86_64_v4 has no instruction for these dtypes"),
        (["unexpected"], "unexpected"),
    ],
)
def test_what_cannot_be_is_exit_code_2_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], message: str
) -> None:
    files: dict[str, object] = {
        "config": CK_TILE_CONFIG,
        "varied": {**SHORT, "variants": ["standard"]},
        "list": [],
        "broken": {"op": "gemm", "problem": 3},
        "none": {
            "op": "gemm",
            "problem": {"tile": [128, 128, 32], "wave": [9, 9, 1], "warp_tile": [16, 16, 16], "pipeline": "mem"},
        },
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    filled = [option.format(**{name: tmp_path / f"{name}.json" for name in files}) for option in options]
    targets = [] if "--gpu-target" in options else ["--gpu-target", "gfx942"]
    folder = tmp_path / "out"
    assert main(["generate", "gemm", "--output-dir", str(folder), *targets, *filled]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert not folder.exists()


def test_a_target_must_be_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["generate", "gemm", "--output-dir", str(tmp_path)]) == 2
    assert "--gpu-target" in capsys.readouterr().err


def test_lists_behind_one_option() -> None:
    several = {"--variants", "--datatype"}
    assert _repeated(["--variants", "a", "b", "--out", "x", "--datatype", "c"], several) == [
        *("--variants", "a", "--variants", "b", "--out", "x", "--datatype", "c")
    ]
    assert _repeated(["--variants=a", "b"], several) == ["--variants=a", "b"]
    assert _repeated(["x", "--datatype"], several) == ["x", "--datatype"]


def test_the_commands_of_the_migration_page_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("default_config.json").write_text(json.dumps(SHORT))
    page = (Path(__file__).resolve().parents[5] / "docs/migrating.md").read_text("utf-8").replace("\\\n", " ")
    commands = re.findall(r"^kernelwright (generate gemm --output-dir .*)$", page, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert main(command.split()) == 0, command
        assert capsys.readouterr().out == "out/registry.json\n"

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action
from kernelwright.codegen.interface import cli, cli_parts
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT, EXIT_DEFECT, EXIT_FAILED
from kernelwright.codegen.testing.null_backend import NullBackend, NullToolchain, null_templates

SPEC = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": [128, 128, 32],
    "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16],
    "pipeline": "compv3",
}


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC))
    return str(path)


def test_list_count_and_json_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["kernels", "--arch", "gfx942", "--set", "gemm:essential"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line.split()) == 3 for line in lines)
    assert main(["kernels", "--arch", "gfx942", "--set", "gemm:essential", "--count"]) == 0
    assert capsys.readouterr().out == f"gfx942 {len(lines)}\n"
    exported = tmp_path / "out/kernels.json"
    assert (
        main(["kernels", "--arch", "gfx942", "--set", "gemm:essential", "--json", "--export-json", str(exported)]) == 0
    )
    out = capsys.readouterr().out
    assert out == exported.read_text()
    kernels = json.loads(out)["kernels"]
    assert [f"{k['arch']} {k['name']} {k['identity']}" for k in kernels] == lines


def test_a_set_without_arch_means_every_arch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--set", "gemm:essential", "--count"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 8


def test_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--set", "gemm:essential", "--filter", "c.arch == 'sm_90a' and c.dtype == 'fp8'"]) == 0
    assert 0 < len(capsys.readouterr().out.splitlines()) < 5


def test_rules_are_listed_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    everything = capsys.readouterr().out.splitlines()
    assert main(["rules", "--backend", "cutlass"]) == 0
    some = capsys.readouterr().out.splitlines()
    assert 0 < len(some) < len(everything) and set(some) < set(everything)
    assert any(line.startswith("gemm.lds_budget: One stage of A and B must fit") for line in everything)
    assert main(["rules", "--backend", "vulkan"]) == EXIT_BAD_INPUT


def test_a_config_says_what_it_dropped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = {"op": "gemm", "problem": SPEC, "trait_config": {"scheduler": {"values": ["intrawave", "interwave"]}}}
    (tmp_path / "c.json").write_text(json.dumps(config))
    assert main(["kernels", "--arch", "gfx942", "--config", str(tmp_path / "c.json"), "--count"]) == 0
    streams = capsys.readouterr()
    assert streams.out == "gfx942 1\n" and "gfx942: 1 combinations dropped by gemm.traits" in streams.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kernels"], "give exactly one of --set, --config, --spec and --problems"),
        (["kernels", "--set", "gemm:essential", "--config", "x"], "give exactly one of"),
        (["kernels", "--config", "x"], "give at least one --arch; known: gfx1100"),
        (["kernels", "--arch", "gfx942", "--config", "/nonexistent"], "cannot read '/nonexistent'"),
        (["kernels", "--arch", "gfx9", "--set", "gemm:essential"], "unknown arch 'gfx9'"),
        (["kernels", "--set", "gemm:esential"], "did you mean 'gemm:essential'"),
        (["kernels", "--set", "gemm:essential", "--filter", "c.tile_m == 1"], "matches none"),
        (["kernels", "--set", "gemm:essential", "--filter", "c.tile_m == 1"], "c.tile_m is "),
        (["generate", "gemm", "--output-dir", "x"], "allowed: gfx1100, "),
        (["generate", "gem"], "No such command 'gem'; allowed: gemm (did you mean 'gemm'?)."),
        (["generate", "gemm", "--datatype", "bf61"], "'int8' (did you mean 'bf16'?)."),
        (["generate", "gemm", "--variants", "standrd"], "(did you mean 'standard'?)."),
        (["rules", "--backend", "cpus"], "did you mean 'cpu'"),
        (["kernels", "--set", "gemm:essential", "--filter", "c.__class__"], "unknown attribute '__class__'"),
        (["kernels", "--sett", "x"], "No such option"),
        (["bake"], "No such command"),
        (["plan", "--request", "/nonexistent", "--response", "x"], "cannot read"),
        (["build", "--set", "gemm:essential", "--name", "g", "--trees", "/none", "--out", "x"], "cannot read '/none'"),
    ],
)
def test_bad_input_is_2_and_says_why(
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == EXIT_BAD_INPUT
    streams = capsys.readouterr()
    assert message in streams.err and streams.out == "" and not list(tmp_path.iterdir())


def test_render_writes_what_changed_and_removes_what_is_gone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: str
) -> None:
    command = ["render", "--arch", "sm_90a", "--set", "gemm:essential", "--out", str(tmp_path / "o")]
    assert main(command) == 0
    headers = {path.name for path in (tmp_path / "o/sm_90a").iterdir()}
    assert len(headers) > 2
    assert main(command) == 0
    assert "0 written, 0 removed" in capsys.readouterr().err
    assert main([*command, "--filter", "c.dtype == 'fp8'"]) == 0
    assert {path.name for path in (tmp_path / "o/sm_90a").iterdir()} < headers


def test_plan_and_bundle_write_nothing_on_bad_input(tmp_path: Path) -> None:
    request, response = tmp_path / "request.json", tmp_path / "response.json"
    for command in ("plan", "bundle"):
        request.write_text('{"stage": "nonsense"}')
        assert main([command, "--request", str(request), "--response", str(response)]) == 2
        assert not response.exists()
    request.write_text(json.dumps({"stage": "expand", "kernels": [{"arch": "gfx942", "spec": SPEC}]}))
    assert main(["plan", "--request", str(request), "--response", str(response)]) == 0
    assert len(json.loads(response.read_text())["kernels"]) == 1


def test_build_makes_library_and_manifest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    null_templates(monkeypatch)
    monkeypatch.setattr("kernelwright.codegen.building.build.backend_for", lambda arch, toolchains: NullBackend())
    monkeypatch.setattr(
        "kernelwright.codegen.planning.describe.toolchains_for", lambda arch, chosen: {"hip": NullToolchain()}
    )
    (tmp_path / "trees.json").write_text("{}")
    rest = ["--name", "g", "--trees", str(tmp_path / "trees.json"), "--out", str(tmp_path / "o"), "-j", "2"]
    assert main(["build", "--arch", "gfx942", "--spec", spec, *rest]) == 0
    manifest = json.loads((tmp_path / "o/gfx942/manifest.json").read_text())
    assert manifest["toolchains"] == {"hip": "null 1.0"} and len(manifest["kernels"]) == 1
    assert b"kw_library_get" in (tmp_path / "o/gfx942/libg.so").read_bytes()
    assert str(tmp_path / "o/gfx942/manifest.json") in capsys.readouterr().out


def test_a_failing_build_is_1_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(NullBackend):
        def library_actions(
            self, arch: Arch, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
        ) -> tuple[Action, ...]:
            return (Action("l", "Link", (sys.executable, "-c", "1/0"), (table,), (library,)),)

    null_templates(monkeypatch)
    monkeypatch.setattr("kernelwright.codegen.building.build.backend_for", lambda arch, toolchains: Failing())
    (tmp_path / "trees.json").write_text("{}")
    rest = ["--name", "g", "--trees", str(tmp_path / "trees.json"), "--out", str(tmp_path / "o")]
    assert main(["build", "--arch", "gfx942", "--spec", spec, *rest]) == EXIT_FAILED
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert not (tmp_path / "o/gfx942").exists()


def test_a_tree_without_a_folder_is_2(capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: str) -> None:
    (tmp_path / "trees.json").write_text("{}")
    rest = ["--name", "g", "--trees", str(tmp_path / "trees.json"), "--out", str(tmp_path / "o")]
    assert main(["build", "--arch", "gfx942", "--spec", spec, *rest]) == EXIT_BAD_INPUT
    assert "no folder was given for tree" in capsys.readouterr().err


def test_a_defect_is_4(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("kernelwright.codegen.interface.cli.select", broken)
    assert main(["kernels", "--set", "gemm:essential"]) == EXIT_DEFECT
    assert "boom" in capsys.readouterr().err


def test_the_module_runs_and_starts_light() -> None:
    code = (
        "import sys; from kernelwright.codegen.interface.cli import main; "
        "code = main(['kernels', '--arch', 'gfx942', '--set', 'gemm:essential', '--count']); "
        "heavy = {'rich', 'jinja2', 'numpy', 'hypothesis'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
    command = [sys.executable, "-m", "kernelwright.codegen", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "Usage: kernelwright" in done.stdout and "\x1b" not in done.stdout


@pytest.mark.parametrize("arguments", ["--help", "rules", "kernels --set gemm:essential --json"])
def test_a_reader_that_has_seen_enough_is_no_failure(arguments: str) -> None:
    command = [sys.executable, "-m", "kernelwright.codegen", *arguments.split()]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.close()  # before a byte was written
    assert started.communicate(timeout=120)[1] == b"" and started.returncode == 0


def test_a_plain_install_is_told_what_to_install() -> None:
    program = (
        "import sys, runpy; sys.modules['click'] = None; runpy.run_module('kernelwright.codegen', run_name='__main__')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "error: kernelwright.codegen needs the package click; pip install 'kernelwright[build]'\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kernelwright ke", "plain,kernels"),
        ("kernelwright kernels --arch gfx94", "plain,gfx942"),
        ("kernelwright build --coun", ""),
        ("kernelwright kernels --coun", "plain,--count"),
        (
            "kernelwright kernels --set essen",
            "\n".join(f"plain,{op}:essential" for op in ("attention", "convolution", "gemm", "norm")),
        ),
    ],
)
def test_a_shell_completes_commands_options_and_architectures(words: str, expected: str) -> None:
    environment = {
        **os.environ,
        "_KERNELWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; from kernelwright.codegen.interface.cli import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected, done.stderr


def test_jit_is_a_part_that_may_be_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "kernelwright.jit.command", None)
    assert cli.main(["jit", "--set", "gemm:essential"]) == EXIT_BAD_INPUT
    said = capsys.readouterr().err
    assert "needs the package kernelwright.jit" in said and "pip install 'kernelwright[jit]'" in said


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ([], []),
        (["--json"], ["--json"]),
        (["--verify"], ["--verify"]),
        (["--verify", "--json"], ["--json", "--verify"]),
        (["--verify", "store", "--json"], ["--json", "--verify", "store"]),
    ],
)
def test_doctor_gets_its_options(monkeypatch: pytest.MonkeyPatch, given: list[str], passed_on: list[str]) -> None:
    seen: list[list[str]] = []

    def doctor(arguments: list[str]) -> int:
        seen.append(arguments)
        return 1

    monkeypatch.setitem(sys.modules, "kernelwright.dispatch.tools.doctor", SimpleNamespace(main=doctor))
    assert main(["doctor", *given]) == 1 and seen == [passed_on]


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kernelwright ")


def test_without_trees_installed_wheels_serve_and_a_missing_one_says_what_to_install(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("kernelwright.jit", ModuleType("kernelwright.jit")), ("kernelwright.jit.toolchains", None)):
        monkeypatch.setitem(sys.modules, name, value)
    rest = ["--name", "g", "--out", str(tmp_path / "o")]
    assert main(["build", "--arch", "gfx942", "--spec", spec, *rest]) == EXIT_BAD_INPUT
    assert "pip install 'kernelwright[jit]'" in capsys.readouterr().err
    module = ModuleType("kernelwright.jit.toolchains")
    module.InstalledTrees = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kernelwright.jit.toolchains", module)
    assert main(["build", "--arch", "gfx942", "--spec", spec, *rest]) == EXIT_BAD_INPUT
    assert "no folder was given for tree" in capsys.readouterr().err


def test_commands_of_other_parts_are_listed_and_get_their_arguments(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n  {name} " in listed for name in ("jit", "tile-engine", "coverage"))
    given: list[list[str]] = []
    monkeypatch.setattr(
        cli_parts, "part", lambda module, extra: SimpleNamespace(main=lambda words: given.append(words))
    )
    for words in (["tile-engine", "bench", "--help"], ["coverage", "--json", "x"]):
        main(words)
    assert given == [["bench", "--help"], ["coverage", "--json", "x"]]

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.jit import command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "esential"], "did you mean 'essential'"),
        (["--spec", "SPEC"], "dtype"),
        (["--spec", "LIST"], "LIST holds no spec"),
        (["--spec", "TEXT"], "'TEXT' is not JSON"),
        (["--spec", "TWICE"], "the key 'op' is given twice"),
        (["--spec", "NONE"], "NONE"),
        (["--set", "essential", "--filter", "c.tile_m > 9999"], "matches none"),
        (["--spec", "SPEC", "--filter", "True"], "leave it out with --spec"),
        (["--set", "essential", "--limit", "max_vgpr_spills=0"], "have no such number"),
        (["--set", "essential", "--device", "cuda:x"], "device is 'cuda:x'; allowed"),
    ],
)
def test_bad_input_is_exit_status_2(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "SPEC": '{"op": "gemm", "dtype": "fp23"}',
        "LIST": "[]",
        "TEXT": "{",
        "TWICE": '{"op": "gemm", "op": "gemm"}',
    }.items():
        Path(name).write_text(text)
    assert command.main([*arguments, "--arch", "x86_64_v3", "--cache", "cache"]) == command.EXIT_BAD_INPUT
    said = capsys.readouterr()
    assert said.out == "" and words in said.err


@pytest.mark.parametrize("arguments", [[], ["--set", "a", "--spec", "b"], ["--set", "a", "--limit", "max_registers"]])
def test_wrong_usage_is_exit_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == command.EXIT_BAD_INPUT


def test_a_plain_install_is_told_what_to_install() -> None:
    code = "import sys; sys.modules['pydantic'] = None; from kernelwright.jit import Registry"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    said = done.stderr.splitlines()[-1]
    assert said.endswith("kernelwright.jit needs the package pydantic; pip install 'kernelwright[jit]'")

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT
from kernelwright.jit import command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "gemm:esential"], "did you mean 'gemm:essential'"),
        (["--spec", "SPEC"], "dtype"),
        (["--spec", "LIST"], "LIST holds no spec"),
        (["--spec", "TEXT"], "'TEXT' is not JSON"),
        (["--spec", "TWICE"], "the key 'op' is given twice"),
        (["--spec", "NONE"], "NONE"),
        (["--set", "gemm:essential", "--filter", "c.tile_m > 9999"], "matches none"),
        (["--set", "gemm:essential", "--filter", "c.tile_m =="], "is no expression"),
        (["--spec", "SPEC", "--filter", "True"], "leave it out with --spec"),
        (["--problems", "LIST"], "a trace is"),
        (["--problems", "NONE"], "NONE"),
        (["--set", "gemm:essential", "--limit", "max_vgpr_spills=0"], "have no such number"),
        (["--set", "gemm:essential", "--device", "cuda:x"], "device is 'cuda:x'; allowed"),
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
    assert command.main([*arguments, "--arch", "x86_64_v3", "--cache", "cache"]) == EXIT_BAD_INPUT
    said = capsys.readouterr()
    assert said.out == "" and words in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "is required"),
        (["--set", "a", "--spec", "b"], "not allowed with"),
        (["--set", "a", "--limit", "max_registers"], "write a name and a number"),
        (["--set", "a", "--jobs", "0"], "argument -j/--jobs: '0'; allowed: whole numbers from 1"),
        (["--set", "a", "--jobs", "two"], "argument -j/--jobs: 'two'; allowed: whole numbers from 1"),
        (["--set", "a", "--timeout", "-1"], "argument --timeout: '-1'; allowed: seconds above 0"),
        (["--set", "a", "--timeout", "nan"], "argument --timeout: 'nan'; allowed: seconds above 0"),
    ],
)
def test_wrong_usage_is_exit_status_2(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == EXIT_BAD_INPUT and words in capsys.readouterr().err


def test_a_plain_install_is_told_what_to_install() -> None:
    code = "import sys; sys.modules['pydantic'] = None; from kernelwright.jit import Registry"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    said = done.stderr.splitlines()[-1]
    assert said.endswith("kernelwright.jit needs the package pydantic; pip install 'kernelwright[jit]'")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kernelwright jit --se", "plain,--set"),
        (
            "kernelwright jit --set essen",
            "\n".join(f"plain,{op}:essential" for op in ("attention", "convolution", "gemm", "norm")),
        ),
        ("kernelwright jit --set gemm:essential --arch gfx94", "plain,gfx942"),
        ("kernelwright jit --device sim:gfx94", "plain,sim:gfx942"),
        ("kernelwright jit --spec ke", "file,ke"),
    ],
)
def test_a_shell_completes_options_and_values(words: str, expected: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "_KERNELWRIGHT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; from kernelwright.codegen.interface.cli import main; sys.exit(main([]))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected, done.stderr

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from kernelwright.codegen.toolchains import python
from kernelwright.codegen.toolchains.python import PYTHON, is_python, located, module_command, python_argv


def test_only_commands_of_the_generators_python_are_located() -> None:
    command = module_command("kernelwright.files.strict_json", "a", "b", memory_mb=1)
    assert command.argv == (PYTHON, "-m", "kernelwright.files.strict_json", "a", "b") and is_python(command.argv)
    assert located(command.argv) == python_argv("kernelwright.files.strict_json", "a", "b")
    assert located(command.argv)[0] == sys.executable
    assert located(("tool", PYTHON)) == ["tool", PYTHON]


def test_a_module_gets_its_arguments_and_its_exit_code_is_the_commands(tmp_path: Path) -> None:
    done = subprocess.run(python_argv("kernelwright.codegen", "no-such-command"), cwd=tmp_path, capture_output=True)
    assert done.returncode == 2 and b"no-such-command" in done.stderr


def test_every_file_counts_in_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python.files_digest.cache_clear()
    before = python.files_digest()
    original = resources.files
    seen: list[str] = []

    def files(package: str) -> Path:
        copy = tmp_path / package
        copy.mkdir(exist_ok=True)
        for file in original(package).iterdir():
            if file.is_file():
                seen.append(f"{package}/{file.name}")
                changed = b"#" if file.name == "line.py" else b""
                (copy / file.name).write_bytes(file.read_bytes() + changed)
        return copy

    monkeypatch.setattr(resources, "files", files)
    python.files_digest.cache_clear()
    assert python.files_digest() != before
    assert {"kernelwright.files.counts/line.py", "kernelwright.files.instruction_sets/gfx942.json"} <= set(seen)
    for file in tmp_path.rglob("*_test.py"):
        file.write_text("changed")
    monkeypatch.setattr(resources, "files", lambda package: tmp_path / package)
    python.files_digest.cache_clear()
    changed = python.files_digest()
    (tmp_path / "kernelwright.files.counts/line.py").write_bytes(
        (tmp_path / "kernelwright.files.counts/line.py").read_bytes().removesuffix(b"#")
    )
    python.files_digest.cache_clear()
    assert python.files_digest() == before != changed
    python.files_digest.cache_clear()

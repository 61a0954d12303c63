from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.files import arch_files
from kernelwright.files.arch_files import ArchFileError

SHIPPED = Path(arch_files.__file__).parent / "archs"
Write = Callable[..., Path]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes an architecture like another one into a folder of the setting."""
    monkeypatch.setenv(arch_files.SETTING, str(tmp_path))

    def write(name: str, like: str, file: str = "", **changes: Any) -> Path:
        path = tmp_path / f"{file or name}.json"
        path.write_text(json.dumps({**json.loads((SHIPPED / f"{like}.json").read_text()), "name": name, **changes}))
        return path

    return write


def test_an_architecture_of_the_setting_is_known_everywhere(mine: Write) -> None:
    mine("gfx1200", "gfx1201", lds_bytes=32768, amdgpu={"machine": 0x48, "instructions": "gfx1201"})
    mine("my_hopper", "sm_90a")
    assert archs.names()[-2:] == arch_files.own_names() == ("gfx1200", "my_hopper")
    assert archs.load("gfx1200").lds_bytes == 32768 and archs.load("my_hopper").target == "sm_90a"
    facts = {one.name: one for one in arch_files.device_facts()}
    assert facts["my_hopper"].compute_capability == facts["sm_90a"].compute_capability == (9, 0)
    assert (facts["gfx1200"].kind, facts["gfx1200"].machine, facts["gfx1200"].lds_bytes) == ("hip", 0x48, 32768)
    assert [one.name for one in arch_files.simulated()] == [
        "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1200"
    ]  # fmt: skip


def test_facts_are_those_of_the_files() -> None:
    for one in arch_files.device_facts():
        arch = archs.load(one.name)
        assert (one.backend, one.target, one.wave_size) == (arch.backend, arch.target, arch.wave_size)
        assert one.cpu_flags == set(arch.cpu.flags if arch.cpu else ())
        assert one.compute_capability == (arch.cuda.compute_capability if arch.cuda else None)
        assert one.machine == (arch.amdgpu.machine if arch.amdgpu else None)
        assert {"cpu": arch.cpu, "cuda": arch.cuda, "hip": arch.amdgpu}[one.kind] is not None


def test_a_wrong_folder_or_file_is_refused(mine: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = mine("gfx942", "gfx942")
    with pytest.raises(archs.ArchError, match=r"an arch named 'gfx942' exists already; choose another name for .*json"):
        archs.names()
    path.unlink()
    mine("other", "gfx942", file="gfx999")
    arch_files._own.cache_clear()
    for reads in (arch_files.device_facts, lambda: archs.load("gfx999")):
        with pytest.raises(ValueError, match=r"has the name 'other'; call the file other\.json"):
            reads()
    monkeypatch.setenv(arch_files.SETTING, f"{tmp_path}/none")
    with pytest.raises(ArchFileError, match=r"KERNELWRIGHT_ARCH_PATH names '.*none', which is no folder"):
        arch_files.names()


def test_a_file_may_say_only_what_differs(mine: Write, tmp_path: Path) -> None:
    patch = {"like": "gfx1201", "name": "mine", "operations": {"attention": None, "gemm": {"waves": [[2, 2, 1]]}}}
    (tmp_path / "mine.json").write_text(json.dumps(patch))
    made, whole = arch_files.read("mine")[0], json.loads((SHIPPED / "gfx1201.json").read_text())
    whole["operations"]["gemm"]["waves"] = [[2, 2, 1]]
    del whole["operations"]["attention"]
    assert made == {**whole, "name": "mine"} and archs.load("mine").target == "gfx1201"
    (tmp_path / "mine.json").write_text(json.dumps({**patch, "like": "gfx1200"}))
    with pytest.raises(ArchFileError, match=r"mine\.json': like is 'gfx1200'; allowed: gfx1100, gfx1201, "):
        arch_files.read("mine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "name is None; allowed: a str"),
        ('{"name": "mine", "backend": "cpu", "target": "x", "wave_size": true}', "wave_size is True; allowed: a int"),
        ('{"name": "mine", "backend": "cpu", "target": "x", "wave_size": 1, "lds_bytes": 1, "cpu": [1]}', "flags"),
        ('{"name": "mine", "backend": "ck_tile", "target": "x", "wave_size": 1, "lds_bytes": 1, "amdgpu": {"a": 1}}',
         "amdgpu: machine is None"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_named(mine: Write, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(ArchFileError, match=f"mine.json.*{message}"):
        arch_files.device_facts()

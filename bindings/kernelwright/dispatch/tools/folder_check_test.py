from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from kernelwright.dispatch.testdata.mocks import write_library
from kernelwright.dispatch.tools.store_check import Found, check_folders

KEY = "ab" * 32


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def cache(root: Path, outputs: Mapping[str, bytes], key: str = KEY) -> Path:
    """A cache with one result, as local builds write it, and a text."""
    entry = root / "actions" / key
    for name, data in outputs.items():
        (entry / name).parent.mkdir(parents=True, exist_ok=True)
        (entry / name).write_bytes(data)
    (entry / "__sha256.json").write_text(json.dumps({name: sha256(data) for name, data in outputs.items()}))
    (root / "texts").mkdir(exist_ok=True)
    (root / "texts" / sha256(b"a header")).write_bytes(b"a header")
    return root


def checked(*folders: Path) -> Found:
    findings = Found()
    check_folders(folders, findings)
    return findings


def test_sound_caches_and_libraries_have_no_problem(tmp_path: Path) -> None:
    first, second = (cache(tmp_path / name, {"objects/k.o": b"object", "k.json": b"report"}) for name in "ab")
    write_library(tmp_path / "a/libraries/0123")
    findings = checked(first, second)
    assert (findings.problems, findings.files, findings.unknown) == ([], 7, 1)


@pytest.mark.parametrize("file", [f"actions/{KEY}/objects/k.o", f"texts/{sha256(b'a header')}"])
def test_what_is_not_what_was_stored_is_named(tmp_path: Path, file: str) -> None:
    root = cache(tmp_path, {"objects/k.o": b"object"})
    (root / file).write_bytes(b"other")
    (problem,) = checked(root).problems
    assert f"{root / file} is not what was built" in problem


@pytest.mark.parametrize("text", ["{", "[1]", '{"objects/k.o": 1}', '{"../../../k.o": "00"}', '{"k": "0", "k": "0"}'])
def test_seals_that_say_nothing_are_damage(tmp_path: Path, text: str) -> None:
    root = cache(tmp_path, {"objects/k.o": b"object"})
    (root / "actions" / KEY / "__sha256.json").write_text(text)
    assert len(checked(root).problems) == 1


def test_a_library_that_is_not_its_manifests_is_named(tmp_path: Path) -> None:
    folder = write_library(tmp_path / "libraries/0123")
    (library,) = folder.glob("*.so")
    library.write_bytes(library.read_bytes() + b"x")
    (problem,) = checked(tmp_path).problems
    assert f"{library} is not what was built" in problem


def test_one_command_has_one_result_in_all_caches(tmp_path: Path) -> None:
    first, second = (cache(tmp_path / name, {"objects/k.o": name.encode()}) for name in "ab")
    assert checked(first).problems == checked(second).problems == []
    (problem,) = checked(first, second).problems
    assert problem.startswith("objects/k.o has 2 forms though command, inputs and toolchains are the same (key abab")
    assert str(first) in problem and str(second) in problem
    cache(tmp_path / "c", {"objects/k.o": b"c"}, "cd" * 32)  # of another command
    assert checked(first, tmp_path / "c").problems == []

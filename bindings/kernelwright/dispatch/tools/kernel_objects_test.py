from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelwright.dispatch.tools.kernel_objects import compare_objects
from kernelwright.dispatch.tools.lmdb_shards import described
from kernelwright.dispatch.tools.store_check import Found, check_folders

STATEMENT = "urn:x-kernelwright:kernel-library:1"


def library(
    objects: dict[str, str], name: str = "g", toolchain: str = "zig 1", sources: Sequence[str] = ("a.h 1",)
) -> tuple[bytes, bytes]:
    """Manifest and statement of a library; ``objects``: identity to digest."""
    kernels = [
        {"identity": identity, "name": f"k{identity}", "object_sha256": made} for identity, made in objects.items()
    ]
    manifest = json.dumps(
        {
            **{"name": name, "toolchains": {"host": toolchain}, "kernels": kernels},
            **{"library": "lib.so", "sha256": hashlib.sha256(name.encode()).hexdigest()},
        }
    ).encode()
    subject = [
        {"name": "lib.so"},
        {"name": "manifest.json", "digest": {"sha256": hashlib.sha256(manifest).hexdigest()}},
    ]
    build = {"buildType": STATEMENT, "resolvedDependencies": list(sources)}
    statement = {"subject": subject, "predicate": {"buildDefinition": build}}
    return manifest, json.dumps(statement).encode()


def compared(*libraries: tuple[bytes, bytes]) -> Any:
    return compare_objects(entry for files in libraries for data in files if (entry := described(data)) is not None)


def test_one_identity_has_one_object_of_the_same_sources_and_toolchain() -> None:
    both = compared(library({"1": "x", "2": "y"}), library({"2": "y", "3": "z"}, name="other"))
    assert (both.kernels, both.libraries, both.unknown, both.problems) == (3, 2, 0, ())
    (problem,) = compared(library({"1": "x", "2": "y"}), library({"2": "not y"}, name="other")).problems
    assert problem.startswith("kernel k2 (identity 2) has 2 objects of one toolchain and the same sources: not y, y; ")


@pytest.mark.parametrize("difference", [{"toolchain": "zig 2"}, {"sources": ["a.h 2"]}])
def test_other_sources_and_toolchains_give_other_objects(difference: dict[str, Any]) -> None:
    comparison = compared(library({"1": "x"}), library({"1": "y"}, **difference))
    assert comparison.kernels == 2 and not comparison.problems


def test_of_libraries_without_a_statement_nothing_is_said() -> None:
    (manifest, _), other = library({"1": "x"}), library({"1": "y"}, name="other")
    comparison = compare_objects([described(manifest), *map(described, other)])  # type: ignore[list-item]
    assert (comparison.kernels, comparison.libraries, comparison.unknown, comparison.problems) == (1, 2, 1, ())


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"{", b"[]", b'{"object_sha256": 1}', f'{{"a": "{STATEMENT}"}}'.encode(), b"{}"]
)
def test_other_files_are_passed_over(data: bytes) -> None:
    assert described(data) is None and described(memoryview(data)) is None


def test_a_folder_of_libraries_is_compared(tmp_path: Path) -> None:
    for name, made in (("one", "x"), ("two", "y")):
        manifest, statement = library({"1": made}, name=name)
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_bytes(manifest)
        (tmp_path / name / "provenance.json").write_bytes(statement)
        (tmp_path / name / "lib.so").write_bytes(name.encode())
    findings = Found()
    check_folders([tmp_path / "one", tmp_path / "two"], findings)
    assert findings.kernels == 1 and "has 2 objects" in findings.problems[0]

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.core.errors import DigestMismatchError
from kernelwright.dispatch.testdata.mocks import write_library

PREDICATE: dict[str, dict[str, list[str]]] = {"buildDefinition": {"resolvedDependencies": []}}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stated(tmp_path: Path) -> Path:
    """A mock library with a statement."""
    folder = write_library(tmp_path / "x86_64_v3")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["provenance_sha256"] = sha(json.dumps(PREDICATE, sort_keys=True, separators=(",", ":")).encode())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    digests = {manifest["library"]: manifest["sha256"], "manifest.json": sha((folder / "manifest.json").read_bytes())}
    subjects = [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()]
    (folder / "provenance.json").write_text(json.dumps({"subject": subjects, "predicate": PREDICATE}))
    return folder


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_whole_package_loads(tmp_path: Path) -> None:
    assert KernelLibrary.load(stated(tmp_path)).manifest.provenance_sha256 is not None


def test_a_library_without_a_statement_loads(tmp_path: Path) -> None:
    assert KernelLibrary.load(write_library(tmp_path / "x86_64_v3")).manifest.provenance_sha256 is None


@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda folder: next(folder.glob("*.so")).open("ab").write(b"x"), "its manifest says"),
        (
            lambda folder: _replace(folder / "manifest.json", '"toolchains": {', '"toolchains": {"x": "y", '),
            "does not fit manifest",
        ),
        (lambda folder: _replace(folder / "provenance.json", "[]", '["x"]'), "not the statement"),
        (lambda folder: _replace(folder / "provenance.json", '"name": "manifest.json"', '"name": "x"'), "does not fit"),
        (lambda folder: (folder / "provenance.json").write_text("{}"), "cannot be read as a statement"),
        (lambda folder: (folder / "provenance.json").write_text("["), "cannot be read as a statement"),
        (
            lambda folder: (folder / "provenance.json").write_text("[" * 100_000),
            "cannot be read as a statement",
        ),
        (lambda folder: (folder / "provenance.json").unlink(), "is not there, though manifest.json names its digest"),
    ],
)
def test_whatever_was_altered_is_refused(tmp_path: Path, tamper: Callable[[Path], object], message: str) -> None:
    folder = stated(tmp_path)
    tamper(folder)
    with pytest.raises(DigestMismatchError, match=message):
        KernelLibrary.load(folder)

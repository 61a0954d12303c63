from __future__ import annotations

import base64
import hashlib
import json
import sys
from pathlib import Path

import pytest

from kernelwright.dispatch.tools import store_check
from kernelwright.dispatch.tools.store_check import Found, check_distributions, check_folders

lmdb = pytest.importorskip("lmdb")

PAGE = 4096
SMALL = [f"a small file {number:03}".encode() for number in range(200)]
LARGE = b"a file of several pages " * 400
VALUES = [*SMALL, LARGE]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store as Pants writes it: two databases in an environment, and a large file."""
    for kind, values in (("files", VALUES), ("directories", [])):
        folder = tmp_path / kind / "0"
        folder.mkdir(parents=True)
        with lmdb.open(str(folder), max_dbs=3, map_size=1 << 24) as environment:
            content = environment.open_db(b"content-versioned")
            environment.open_db(b"leases")
            with environment.begin(db=content, write=True) as transaction:
                for value in values:
                    transaction.put(hashlib.sha256(value).digest() + b"\1", value)
    name = hashlib.sha256(b"a compiler").hexdigest()
    (tmp_path / f"immutable/files/{name[:2]}").mkdir(parents=True)
    (tmp_path / f"immutable/files/{name[:2]}/{name}").write_bytes(b"a compiler")
    return tmp_path


def checked(store: Path) -> Found:
    findings = Found()
    check_folders([store], findings)
    return findings


def test_a_whole_store_has_no_problem(store: Path) -> None:
    before = (store / "files/0/data.mdb").read_bytes()
    assert checked(store) == Found(len(VALUES) + 1, [])
    assert (store / "files/0/data.mdb").read_bytes() == before


def test_a_kernel_with_two_objects_in_a_store_is_named(store: Path) -> None:
    files = []
    for made in ("x", "y"):
        manifest = {"toolchains": {}, "kernels": [{"identity": "1", "name": "k1", "object_sha256": made}]}
        files.append(json.dumps(manifest).encode())
        subject = [{"name": "manifest.json", "digest": {"sha256": hashlib.sha256(files[-1]).hexdigest()}}]
        build = {"buildType": "urn:x-kernelwright:kernel-library:1", "resolvedDependencies": ["a.h"]}
        files.append(json.dumps({"subject": subject, "predicate": {"buildDefinition": build}}).encode())
    with lmdb.open(str(store / "files/0"), max_dbs=3, map_size=1 << 24) as environment:
        content = environment.open_db(b"content-versioned")
        with environment.begin(db=content, write=True) as transaction:
            for value in files[1:]:
                transaction.put(hashlib.sha256(value).digest() + b"\1", value)
    name = hashlib.sha256(files[0]).hexdigest()
    (store / f"immutable/files/{name[:2]}").mkdir(parents=True, exist_ok=True)
    (store / f"immutable/files/{name[:2]}/{name}").write_bytes(files[0])  # a large file
    findings = checked(store)
    assert findings.kernels == 1 and findings.files == len(VALUES) + 5
    (problem,) = findings.problems
    assert problem.startswith("kernel k1 (identity 1) has 2 objects")


@pytest.mark.parametrize("value", [SMALL[7], LARGE])
def test_a_changed_value_is_named_by_its_digest(store: Path, value: bytes) -> None:
    data = (store / "files/0/data.mdb").read_bytes()
    assert value in data
    (store / "files/0/data.mdb").write_bytes(data.replace(value, value[:-1] + bytes([value[-1] ^ 1])))
    (problem,) = checked(store).problems
    assert hashlib.sha256(value).hexdigest() in problem and f"remove {store}, build again" in problem


def test_a_changed_large_file_is_named(store: Path) -> None:
    (path,) = (store / "immutable/files").glob("*/*")
    path.write_bytes(b"a compileR")
    assert str(path) in checked(store).problems[0]


def test_damaged_pages_are_named_and_the_other_environments_read(store: Path) -> None:
    """Whatever page is hit: never a traceback, never unseen where an entry is lost."""
    path = store / "files/0/data.mdb"
    whole = path.read_bytes()
    seen = 0
    for page in range(len(whole) // PAGE):
        path.write_bytes(whole[: page * PAGE] + b"\xff" * 64 + whole[page * PAGE + 64 :])
        findings = checked(store)
        assert findings.problems or findings == Found(len(VALUES) + 1, []), page
        if findings.problems:
            assert str(path) in findings.problems[0] and "immutable" not in findings.problems[0]
            assert "directories" not in findings.problems[0]
            seen += 1
    assert seen >= 3  # heads that are not the newest, and free pages, may be anything


def test_a_truncated_environment_is_named(store: Path) -> None:
    path = store / "files/0/data.mdb"
    path.write_bytes(path.read_bytes()[: 3 * PAGE])
    (problem,) = checked(store).problems
    assert f"pages of {path}" in problem
    path.write_bytes(b"")
    assert f"pages of {path}" in checked(store).problems[0]


def test_an_end_of_the_reader_is_a_problem(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = store / "reader.py"
    reader.write_text(
        "import os, sys\nif 'files' in sys.argv[1]: os.kill(os.getpid(), 7)\nraise SystemExit('no more memory')\n"
    )
    monkeypatch.setattr(store_check, "_READER", reader)
    (problem,) = checked(store).problems
    assert f"pages of {store / 'files/0/data.mdb'} (its reader ended: signal 7)" in problem
    assert f"pages of {store / 'directories/0/data.mdb'} (its reader ended: no more memory)" in problem


def test_without_lmdb_it_says_what_to_install(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    monkeypatch.setattr(store_check, "find_spec", lambda name: None)
    findings = checked(store)
    assert findings.files == 1  # the large file
    assert findings.problems == [f"reading {store} needs the package lmdb; pip install 'kernelwright[doctor]'"]


def test_an_installed_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "made_up-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (tmp_path / "tool").write_bytes(b"a tool")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"a tool").digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"tool,sha256={digest},6\nmade_up-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    findings = Found()
    check_distributions(["made-up", "nowhere-to-be-found"], findings)
    assert findings == Found(1, [])
    for damage in (lambda: (tmp_path / "tool").write_bytes(b"a tooL"), (tmp_path / "tool").unlink):
        damage()
        findings = Found()
        check_distributions(["made-up"], findings)
        assert "pip install --force-reinstall made-up" in findings.problems[0]

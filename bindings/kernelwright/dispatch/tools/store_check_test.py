from __future__ import annotations

import base64
import hashlib
import struct
from pathlib import Path

import pytest

from kernelwright.dispatch.tools.store_check import Found, check_distributions, check_store

PAGE = 4096
BRANCH, LEAF, OVERFLOW, META = 1, 2, 4, 8
SMALL, LARGE = b"a header", b"x" * 9000


def page(number: int, kind: int, nodes: list[bytes]) -> bytes:
    offsets, body, end = [], b"", PAGE
    for node in nodes:
        end -= len(node) + len(node) % 2
        offsets.append(end)
        body = node.ljust(len(node) + len(node) % 2, b"\0") + body
    head = struct.pack("<QHHHH", number, 0, kind, 16 + 2 * len(nodes), end)
    head += struct.pack(f"<{len(nodes)}H", *offsets)
    return head.ljust(PAGE - len(body), b"\0") + body


def node(key: bytes, low: int, high: int, flags: int, data: bytes = b"") -> bytes:
    return struct.pack("<HHHH", low, high, flags, len(key)) + key + data


def leaf(key: bytes, value: bytes, flags: int = 0, size: int | None = None) -> bytes:
    size = len(value) if size is None else size
    return node(key, size & 0xFFFF, size >> 16, flags, value)


def head(number: int, transaction: int, root: int) -> bytes:
    tree = struct.pack("<IHHQQQQQ", PAGE, 0, 1, 0, 1, 0, 1, root)
    meta = struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 30) + tree + tree + struct.pack("<QQ", 7, transaction)
    return (struct.pack("<QHHHH", number, 0, META, 0, 0) + meta).ljust(PAGE, b"\0")


def environment() -> bytes:
    """Heads, the list of trees, a branch, its leaf, and a value of three pages; the older head leads nowhere."""
    small, large = (hashlib.sha256(value).digest() + b"\1" for value in (SMALL, LARGE))
    content = struct.pack("<IHHQQQQQ", 0, 0, 2, 1, 1, 3, 2, 3)
    leaves = [leaf(small, SMALL), leaf(large, struct.pack("<Q", 5), flags=1, size=len(LARGE))]
    overflow = struct.pack("<QHHI", 5, 0, OVERFLOW, 3) + LARGE
    return b"".join(
        [
            head(0, 8, 2**64 - 1),
            head(1, 9, 2),
            page(2, LEAF, [leaf(b"content-versioned", content, flags=2), leaf(b"leases", content, flags=2)]),
            page(3, BRANCH, [node(b"", 4, 0, 0)]),
            page(4, LEAF, leaves),
            overflow.ljust(3 * PAGE, b"\0"),
        ]
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "files/0").mkdir(parents=True)
    (tmp_path / "files/0/data.mdb").write_bytes(environment())
    name = hashlib.sha256(b"a compiler").hexdigest()
    (tmp_path / f"immutable/files/{name[:2]}").mkdir(parents=True)
    (tmp_path / f"immutable/files/{name[:2]}/{name}").write_bytes(b"a compiler")
    return tmp_path


def checked(store: Path) -> Found:
    found = Found()
    check_store(store, found)
    return found


def test_a_whole_store_has_no_problem(store: Path) -> None:
    assert checked(store) == Found(3, [])


@pytest.mark.parametrize("value", [SMALL, LARGE])
def test_a_changed_value_is_named_by_its_digest(store: Path, value: bytes) -> None:
    data = environment()
    at = data.index(value) + len(value) - 1
    (store / "files/0/data.mdb").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    (problem,) = checked(store).problems
    assert hashlib.sha256(value).hexdigest() in problem and f"remove {store}, build again" in problem


def test_a_changed_large_file_is_named(store: Path) -> None:
    (path,) = (store / "immutable/files").glob("*/*")
    path.write_bytes(b"a compileR")
    assert str(path) in checked(store).problems[0]


@pytest.mark.parametrize("at", [PAGE, 16, 2 * PAGE + 10, 3 * PAGE + 16, 4 * PAGE])
def test_no_damage_of_a_page_ends_in_a_traceback_or_unseen(store: Path, at: int) -> None:
    data = bytearray(environment())
    data[at : at + 4] = b"\xff\xff\xff\xff"
    if at == 16:  # the older head: the newer one counts
        data[PAGE + 16] ^= 1
    (store / "files/0/data.mdb").write_bytes(data)
    found = checked(store)
    assert len(found.problems) == 1 or found == Found(3, []), found


def test_damage_that_hides_entries_is_seen(store: Path) -> None:
    data = bytearray(environment())
    data[4 * PAGE + 12] -= 2  # one node less
    (store / "files/0/data.mdb").write_bytes(data)
    assert "1 entries instead of 2" in checked(store).problems[0]


def test_an_installed_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "made_up-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (tmp_path / "tool").write_bytes(b"a tool")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"a tool").digest()).decode().rstrip("=")
    (info / "RECORD").write_text(f"tool,sha256={digest},6\nmade_up-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = Found()
    check_distributions(["made-up", "nowhere-to-be-found"], found)
    assert found == Found(1, [])
    for damage in (lambda: (tmp_path / "tool").write_bytes(b"a tooL"), (tmp_path / "tool").unlink):
        damage()
        found = Found()
        check_distributions(["made-up"], found)
        assert "pip install --force-reinstall made-up" in found.problems[0]

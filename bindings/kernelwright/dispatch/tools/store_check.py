"""Damage in what builds keep on disk: every file of Pants' local store and of installed toolchains against its digest.

Builds compare what they are given, but not each of the thousands of files of a toolchain. The store's format is that of
LMDB 0.9 (http://www.lmdb.tech/doc), one environment for each first digit of a digest, beside a folder of large files.
"""

from __future__ import annotations

import base64
import hashlib
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

_PAGE, _HEADER = 4096, 16
_MAGIC = 0xBEEFC0DE
_BRANCH, _LEAF = 1, 2  # flags of a page
_BIG, _SUBTREE = 1, 2  # flags of a node
_NO_PAGE = 2**64 - 1
_TREE = struct.Struct("<IHHQQQQQ")  # a tree's record; its root is last
_CONTENT = b"content-versioned"
_MOST_NAMED = 10  # files that are named one by one


@dataclass
class Found:
    """How many files were compared, and what is wrong, a sentence each."""

    files: int = 0
    problems: list[str] = field(default_factory=list)


def check_store(store: Path, found: Found) -> None:
    """Compare what Pants keeps in a store; nothing may be building meanwhile."""
    damaged = []
    for kind in ("files", "directories"):
        for data in sorted((store / kind).glob("*/data.mdb")):
            damaged += _check_shard(data, found)
    for path in sorted((store / "immutable/files").glob("??/*")):
        found.files += 1
        if _sha256(path).hex() != path.name:
            damaged.append(str(path))
    if damaged:
        found.problems.append(
            f"the local store is damaged: {_listed(damaged)}; stop Pants, remove {store}, build again"
        )


def check_distributions(names: Sequence[str], found: Found) -> None:
    """Compare the files of those distributions that are installed here with what pip has recorded."""
    for name in names:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        wrong = []
        for file in distribution.files or ():
            if file.hash is None or file.hash.mode != "sha256":
                continue
            found.files += 1
            path = Path(str(file.locate()))
            digest = _sha256(path) if path.is_file() else b""
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
                wrong.append(str(path))
        if wrong:
            found.problems.append(f"{name} is damaged: {_listed(wrong)}; pip install --force-reinstall {name}")


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _sha256(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _check_shard(data: Path, found: Found) -> list[str]:
    """Digests of the entries of an environment whose content is another."""
    wrong = []
    with data.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        try:
            for key, start, size in _entries(pages):
                found.files += 1
                if hashlib.sha256(memoryview(pages)[start : start + size]).digest() != key[:32]:
                    wrong.append(f"{key[:32].hex()} in {data}")
        except (struct.error, IndexError, RecursionError, BufferError) as error:
            wrong.append(f"pages of {data} ({error})")
    return wrong


def _entries(pages: mmap.mmap) -> Iterator[tuple[bytes, int, int]]:
    """Key, offset and size of each value."""
    for key, start, _, flags in _walk(pages, _root(pages)):
        if flags & _SUBTREE and key == _CONTENT:
            *_, count, root = _TREE.unpack_from(pages, start)
            seen = 0
            for name, at, length, _ in _walk(pages, root):
                seen += 1
                if at + length > len(pages):
                    raise IndexError(f"{name.hex()} reaches beyond the end")
                yield name, at, length
            if seen != count:
                raise IndexError(f"{seen} entries instead of {count}")


def _root(pages: mmap.mmap) -> int:
    """Of the newer of the two heads."""
    heads = []
    for page in (0, _PAGE):
        magic, _, _, _ = struct.unpack_from("<IIQQ", pages, page + _HEADER)
        trees = page + _HEADER + 24
        root = _TREE.unpack_from(pages, trees + _TREE.size)[-1]
        _, number = struct.unpack_from("<QQ", pages, trees + 2 * _TREE.size)
        if magic == _MAGIC:
            heads.append((number, root))
    if not heads:
        raise IndexError("no head")
    return int(max(heads)[1])


def _walk(pages: mmap.mmap, page: int, depth: int = 0) -> Iterator[tuple[bytes, int, int, int]]:
    """Key, offset and size of the value, and flags, of each node below a page."""
    if page == _NO_PAGE:
        return
    if depth > 32:
        raise IndexError("pages go round in circles")
    start = page * _PAGE
    number, _, kind, lower, _ = struct.unpack_from("<QHHHH", pages, start)
    if number != page or not kind & (_BRANCH | _LEAF) or lower > _PAGE:
        raise IndexError(f"page {page} is none of a tree")
    for (offset,) in struct.iter_unpack("<H", pages[start + _HEADER : start + lower]):
        low, high, flags, length = struct.unpack_from("<HHHH", pages, start + offset)
        at = start + offset + 8
        if kind & _BRANCH:
            yield from _walk(pages, low | high << 16 | flags << 32, depth + 1)
            continue
        key, value = pages[at : at + length], at + length
        if flags & _BIG:
            value = struct.unpack_from("<Q", pages, value)[0] * _PAGE + _HEADER
        yield key, value, low | high << 16, flags

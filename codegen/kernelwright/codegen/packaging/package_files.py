"""The files of a package by name: those of a folder, or those in a wheel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.contents import digest, read_text

if TYPE_CHECKING:
    from wheel.wheelfile import WheelFile

MAX_UNPACKED = 1 << 30
"""The most bytes of all files in a wheel; a package index takes wheels of a tenth of it."""


class UnreadableError(Exception):
    """A wheel that cannot be read; the message says why."""


@dataclass(frozen=True)
class _Entry:
    read: Callable[[], bytes]
    digest: Callable[[], str]


class Files(Mapping[str, _Entry]):
    """Files by name; reads at most :data:`MAX_TEXT` bytes, or a file in a wheel. OSError where reading fails."""

    def __init__(self, entries: Mapping[str, _Entry]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> _Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, name: str) -> bytes:
        """Return the contents of a file. KeyError if there is none of that name."""
        return self._entries[name].read()

    def digest(self, name: str) -> str:
        """Return the sha256 of a file, 64 hex digits. KeyError if there is none of that name."""
        return self._entries[name].digest()

    def with_text(self, name: str, data: bytes) -> Files:
        """Return the same files, with ``data`` as the contents of ``name``."""
        return Files({**self._entries, name: _Entry(lambda: data, lambda: provenance.sha256(data))})

    def below(self, folder: str) -> Files:
        """Return the files below a folder, with names relative to it."""
        start = f"{folder}/"
        return Files({name.removeprefix(start): self[name] for name in self if name.startswith(start)})


def files_in_folder(paths: Iterable[Path]) -> Files:
    """Regular files of one folder by their names."""
    return Files({path.name: _Entry(partial(read_text, path), partial(digest, path)) for path in paths})


@dataclass(frozen=True)
class Wheel:
    """A wheel's files except its RECORD, with the statement at ``provenance.json``; and what is wrong with RECORD."""

    files: Files
    problems: tuple[str, ...]


@contextmanager
def wheel_files(path: Path) -> Iterator[Wheel]:
    """Yield the files of a wheel. UnreadableError, also while reading a file, if the wheel is damaged.

    Reading a file compares it with its digest in RECORD.
    """
    from wheel.wheelfile import WheelFile

    with _readable():
        wheel = WheelFile(path)
    with wheel:
        with _readable():
            unpacked = sum(entry.file_size for entry in wheel.infolist())
            if unpacked > MAX_UNPACKED:
                raise ValueError(f"its files have {unpacked} bytes; allowed: {MAX_UNPACKED}")
        names = wheel.namelist()
        twice = sorted({name for name in names if names.count(name) > 1})
        entries = {name: _wheel_entry(wheel, name) for name in names if name != wheel.record_path}
        statement = entries.pop(f"{wheel.dist_info_path}/{provenance.FILE}", None)
        own = Files({**entries, **({provenance.FILE: statement} if statement else {})})
        yield Wheel(own, tuple(f"{name} is in it twice" for name in twice))


def _wheel_entry(wheel: WheelFile, name: str) -> _Entry:
    def read() -> bytes:
        with _readable():
            return bytes(wheel.read(name))

    return _Entry(read, lambda: provenance.sha256(read()))


@contextmanager
def _readable() -> Iterator[None]:
    """Turn whatever zipfile and wheel raise for a damaged file into UnreadableError."""
    try:
        yield
    except Exception as error:  # of a dozen types: zlib.error, BadZipFile, RuntimeError, NotImplementedError, ...
        raise UnreadableError(f"cannot be read: {error}") from None

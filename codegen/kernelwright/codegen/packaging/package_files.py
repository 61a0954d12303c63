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
"""Bytes of all files in a wheel; a package index takes wheels of a tenth of it."""


class UnreadableError(Exception):
    """A wheel that cannot be read; the message says why."""


@dataclass(frozen=True)
class _Entry:
    read: Callable[[], bytes]
    digest: Callable[[], str]


class Files(Mapping[str, _Entry]):
    """Files by name; what is read is at most :data:`MAX_TEXT` bytes, or a file in a wheel. OSError where that fails."""

    def __init__(self, entries: Mapping[str, _Entry]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> _Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def read(self, name: str) -> bytes:
        """The contents of a file. KeyError if there is none of that name."""
        return self._entries[name].read()

    def digest(self, name: str) -> str:
        """sha256 of a file, 64 hex digits. KeyError if there is none of that name."""
        return self._entries[name].digest()

    def with_text(self, name: str, data: bytes) -> Files:
        """The same files, of which ``name`` holds ``data``."""
        return Files({**self._entries, name: _Entry(lambda: data, lambda: provenance.sha256(data))})

    def below(self, folder: str) -> Files:
        """The files below a folder, named from there on."""
        start = f"{folder}/"
        return Files({name.removeprefix(start): self[name] for name in self if name.startswith(start)})


def files_in_folder(paths: Iterable[Path]) -> Files:
    """Regular files of one folder by their names."""
    return Files({path.name: _Entry(partial(read_text, path), partial(digest, path)) for path in paths})


@dataclass(frozen=True)
class Wheel:
    """What is in a wheel but its RECORD, with the statement at ``provenance.json``; and what is wrong with the list."""

    files: Files
    problems: tuple[str, ...]


@contextmanager
def wheel_files(path: Path) -> Iterator[Wheel]:
    """The files of a wheel while the block runs. UnreadableError, also when one is read, if the wheel is damaged.

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
    """Whatever zipfile and wheel raise of a damaged file, as UnreadableError."""
    try:
        yield
    except Exception as error:  # of a dozen types: zlib.error, BadZipFile, RuntimeError, NotImplementedError, ...
        raise UnreadableError(f"cannot be read: {error}") from None

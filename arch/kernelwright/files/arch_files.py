"""Architecture files: those that ship, and those in the folders that ``KERNELWRIGHT_ARCH_PATH`` names.

A folder of the setting holds ``<name>.json`` for each architecture; colons separate folders. The generator reads whole
files (:mod:`kernelwright.arch`). This module reads the facts that recognise and simulate devices, for packages that
need nothing but the standard library.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kernelwright.files.strict_json import read_json

SETTING = "KERNELWRIGHT_ARCH_PATH"
MAX_BYTES = 1 << 20
"""The largest file in bytes; shipped files have at most 30 kB."""
KINDS: Mapping[str, str] = {"cpu": "cpu", "ck_tile": "hip", "cutlass": "cuda"}
"""The kind of device that the kernels of each backend run on."""


class ArchFileError(ValueError):
    """An architecture file or folder that cannot be used."""


@dataclass(frozen=True)
class DeviceFacts:
    """Facts that recognise the devices of an architecture, and those that the simulator of AMD GPUs needs.

    :ivar target: its name for compilers and the drivers of AMD GPUs, such as ``gfx942``.
    :ivar wave_size: lanes of a wave.
    :ivar lds_bytes: bytes of LDS of a workgroup.
    :ivar fp8_format: ``ocp`` or ``fnuz``.
    :ivar cpu_flags: words that the line ``flags`` of /proc/cpuinfo must contain.
    :ivar compute_capability: major and minor version of NVIDIA GPUs; None for others.
    :ivar machine: the machine number in code objects of AMD GPUs; None if they are not simulated.
    :ivar instructions: the instruction set of AMD GPUs that the simulator executes.
    :ivar operations: the operations that have kernels for it.
    """

    name: str
    backend: str
    target: str
    wave_size: int
    lds_bytes: int
    fp8_format: str
    cpu_flags: frozenset[str]
    compute_capability: tuple[int, ...] | None
    machine: int | None
    instructions: str
    operations: frozenset[str]

    @property
    def kind(self) -> str:
        """The kind of device: ``cpu``, ``cuda`` or ``hip``; the backend's name for a backend without devices."""
        return KINDS.get(self.backend, self.backend)


def names() -> tuple[str, ...]:
    """Return the names of all architectures: shipped ones, sorted, then those of the setting, sorted.

    Raises ArchFileError for a wrong setting.
    """
    return (*_shipped(), *_own(os.environ.get(SETTING, "")))


def own_names() -> tuple[str, ...]:
    """Return the names from the setting alone, sorted."""
    return tuple(_own(os.environ.get(SETTING, "")))


def read(name: str) -> tuple[Any, str]:
    """The contents of an architecture's file and the file's name for messages; ArchFileError if it is not JSON."""
    own = _own(os.environ.get(SETTING, ""))
    if name in own:
        return read_own(own[name]), str(own[name])
    return _read_shipped(name), f"{name}.json"


def read_own(path: str | Path) -> Any:
    """Return the contents of a file of the user's; ArchFileError if it cannot be read or is not JSON.

    With a key ``like``, the file is a merge patch (RFC 7396) of the shipped architecture that the key names.
    """
    try:
        raw = read_json(path, MAX_BYTES)
    except OSError as error:
        raise ArchFileError(f"cannot read the arch file {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise ArchFileError(f"arch file {str(path)!r} is not JSON: {error}") from None
    if not isinstance(raw, dict) or "like" not in raw:
        return raw
    like = raw.pop("like")
    if not isinstance(like, str) or like not in _shipped():
        raise ArchFileError(f"arch file {str(path)!r}: like is {like!r:.80}; allowed: {', '.join(_shipped())}")
    return _merged(_read_shipped(like), raw)


def _merged(old: Any, patch: Any) -> Any:
    """Apply a merge patch: objects are merged, null removes a key, and any other value replaces the old one."""
    if not isinstance(patch, dict):
        return patch
    made = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key), value)
    return made


def device_facts() -> tuple[DeviceFacts, ...]:
    """Return the facts of every architecture, in the order of :func:`names`; ArchFileError for an unusable file."""
    return _facts_of(os.environ.get(SETTING, ""))


def of_kind(kind: str) -> Iterator[DeviceFacts]:
    """Yield the architectures of ``cpu``, ``cuda`` or ``hip`` devices, in the order of :func:`names`."""
    return (one for one in device_facts() if one.kind == kind)


def shipped_with(operation: str) -> tuple[str, ...]:
    """Return the shipped architectures that have kernels of an operation, sorted.

    An operation that no file mentions needs no architecture limits: every architecture has its kernels.
    """
    shipped = tuple(_facts_of(""))
    return tuple(one.name for one in shipped if operation in one.operations) or tuple(one.name for one in shipped)


def simulated() -> tuple[DeviceFacts, ...]:
    """Return the architectures that the simulator executes: shipped ones by generation, then those of the setting."""
    facts = [one for one in device_facts() if one.machine is not None]
    shipped = _shipped()
    return tuple(sorted(facts, key=lambda one: (one.name not in shipped, len(one.name), one.name)))


@functools.cache
def _shipped() -> Mapping[str, Traversable]:
    folder = importlib.resources.files("kernelwright.files").joinpath("archs")
    files = sorted((item.name, item) for item in folder.iterdir() if item.name.endswith(".json"))
    return {name.removesuffix(".json"): item for name, item in files}


def _read_shipped(name: str) -> Any:
    return json.loads(_shipped()[name].read_text("utf-8"))


@functools.cache
def _own(setting: str) -> Mapping[str, Path]:
    by_arch: dict[str, Path] = {}
    for folder in map(Path, filter(None, setting.split(os.pathsep))):
        if not folder.is_dir():
            raise ArchFileError(f"{SETTING} names {str(folder)!r}, which is no folder; write folders with <arch>.json")
        for path in sorted(folder.glob("*.json")):
            other = by_arch.get(path.stem, path.stem if path.stem in _shipped() else None)
            if other is not None:
                raise ArchFileError(f"an arch named {path.stem!r} exists already; choose another name for {path}")
            by_arch[path.stem] = path
    return dict(sorted(by_arch.items()))


@functools.cache
def _facts_of(setting: str) -> tuple[DeviceFacts, ...]:
    return tuple(_facts(name, *read(name)) for name in (*_shipped(), *_own(setting)))


def _facts(name: str, raw: Any, file: str) -> DeviceFacts:
    take = _Reader(file, raw).take
    if take("name", str) != name:
        raise ArchFileError(f"arch file {file!r} has the name {raw['name']!r}; call the file {raw['name']}.json")
    cpu, cuda, amdgpu = (_Reader(f"{file}: {key}", raw.get(key)) for key in ("cpu", "cuda", "amdgpu"))
    return DeviceFacts(
        name,
        take("backend", str),
        take("target", str),
        take("wave_size", int),
        take("lds_bytes", int),
        take("fp8_format", str, "ocp"),
        frozenset(map(str, cpu.take("flags", list))) if cpu.raw is not None else frozenset(),
        tuple(map(int, cuda.take("compute_capability", list))) if cuda.raw is not None else None,
        amdgpu.take("machine", int) if amdgpu.raw is not None else None,
        amdgpu.take("instructions", str) if amdgpu.raw is not None else "",
        frozenset(take("operations", dict)),
    )


@dataclass(frozen=True)
class _Reader:
    where: str
    raw: Any

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        value = self.raw.get(key, default) if isinstance(self.raw, dict) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ArchFileError(f"arch file {self.where}: {key} is {value!r:.80}; allowed: a {kind.__name__}")
        return value

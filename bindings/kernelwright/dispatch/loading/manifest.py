"""manifest.json: the contents of a library, and the toolchains that built it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelwright.dispatch.core.errors import AbiMismatchError, ManifestError
from kernelwright.dispatch.core.kernel import KernelEntry, count_of
from kernelwright.dispatch.core.native import ABI_VERSION
from kernelwright.files.arch_files import KINDS
from kernelwright.files.strict_json import read_json

SCHEMA_VERSION = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, repr=False)
class Manifest:
    """The manifest of a library.

    :ivar path: the file that it was read from.
    :ivar name: name of the library.
    :ivar arch: architecture of all kernels, such as ``gfx942``.
    :ivar backend: ``ck_tile``, ``cutlass`` or ``cpu``.
    :ivar library: file name of the library, beside the manifest.
    :ivar sha256: digest of that file.
    :ivar toolchains: versions of the toolchains that built it.
    :ivar kernels: its kernels.
    :ivar device: product name of the architecture, such as ``AMD Instinct MI300 series``.
    :ivar provenance_sha256: digest of the provenance statement, if the library has one.
    :ivar models: learned models in the library: name, op, dtypes, arch and sha256 of each.
    """

    path: Path
    name: str
    arch: str
    backend: str
    library: str
    sha256: str
    toolchains: Mapping[str, str]
    kernels: tuple[KernelEntry, ...]
    device: str = ""
    provenance_sha256: str | None = None
    models: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        """Name, architecture, kernels and file."""
        return f"<Manifest {self.name} for {self.arch}: {count_of(len(self.kernels), 'kernel')}, {self.path}>"

    @property
    def target(self) -> str:
        """The architecture and its devices, such as ``gfx942 (AMD Instinct MI300 series)``."""
        return f"{self.arch} ({self.device})" if self.device else self.arch

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Parse a file. ManifestError names key and value; AbiMismatchError for another ABI version."""
        try:
            raw = read_json(path)
        except FileNotFoundError:
            raise ManifestError(f"{path} is not there; a library is loaded through the manifest beside it") from None
        except (OSError, ValueError) as error:
            raise ManifestError(f"{path} cannot be read as JSON: {error}") from error
        return cls.parse(raw, path)

    @classmethod
    def parse(cls, raw: Any, path: Path) -> Manifest:
        """Parse decoded JSON; errors name ``path``."""
        reader = _Reader(str(path), raw)
        version = reader.take("schema_version", int)
        if version != SCHEMA_VERSION:
            raise ManifestError(f"{path}: schema_version is {version}; allowed: {SCHEMA_VERSION}")
        abi = reader.take("abi_version", int)
        if abi != ABI_VERSION:
            raise AbiMismatchError(f"{path}: abi_version is {abi}; allowed: {ABI_VERSION}; rebuild the library")
        library = reader.take("library", str)
        if not library or "/" in library or library in (".", ".."):
            raise ManifestError(f"{path}: library is {library!r}; allowed: the name of a file beside the manifest")
        backend = reader.take("backend", str)
        if backend not in KINDS:
            raise ManifestError(f"{path}: backend is {backend!r}; allowed: {', '.join(KINDS)}")
        arch = reader.take("arch", str)
        kernels = tuple(
            _kernel(_Reader(f"{path}: kernels[{index}]", entry), arch)
            for index, entry in enumerate(reader.take("kernels", list))
        )
        if not kernels:
            raise ManifestError(f"{path}: kernels is empty; build a library with at least one")
        toolchains = MappingProxyType(_texts(reader, "toolchains"))
        statement = reader.digest("provenance_sha256") if "provenance_sha256" in raw else None
        name, sha256 = reader.take("name", str), reader.digest("sha256")
        device = reader.take("device", str) if "device" in raw else ""
        listed = reader.take("models", list) if "models" in raw else []
        models = tuple(_model(_Reader(f"{path}: models[{index}]", one)) for index, one in enumerate(listed))
        return cls(path, name, arch, backend, library, sha256, toolchains, kernels, device, statement, models)


def _kernel(reader: _Reader, arch: str) -> KernelEntry:
    entry = KernelEntry(
        name=reader.take("name", str),
        identity=reader.digest("identity"),
        arch=reader.take("arch", str),
        spec=MappingProxyType(reader.take("spec", dict)),
        features=reader.take("features", str),
        object_sha256=reader.take("object_sha256", str | None),
        resources=reader.take("resources", dict | None),
    )
    if entry.arch != arch:
        raise ManifestError(f"{reader.where}: arch is {entry.arch!r} in a manifest for {arch!r}; they must be equal")
    return entry


def _texts(reader: _Reader, key: str) -> dict[str, str]:
    inner = _Reader(f"{reader.where}: {key}", reader.take(key, dict))
    return {name: inner.take(name, str) for name in inner.raw}


def _model(reader: _Reader) -> Mapping[str, Any]:
    texts = {key: reader.take(key, str) for key in ("name", "op", "arch")}
    dtypes = reader.take("dtypes", list)
    if not dtypes or not all(isinstance(dtype, str) for dtype in dtypes):
        raise ManifestError(f"{reader.where}: dtypes is {dtypes!r}; allowed: names of element types")
    return MappingProxyType({**texts, "dtypes": tuple(dtypes), "sha256": reader.digest("sha256")})


@dataclass(frozen=True)
class _Reader:
    where: str
    raw: Any

    def take(self, key: str, kind: Any) -> Any:
        if not isinstance(self.raw, dict):
            raise ManifestError(f"{self.where}: is a JSON {type(self.raw).__name__}; allowed: an object")
        if key not in self.raw:
            raise ManifestError(f"{self.where}: {key} is missing")
        value = self.raw[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            expected = getattr(kind, "__name__", str(kind))
            raise ManifestError(f"{self.where}: {key} is {value!r}; allowed: {expected}")
        return value

    def digest(self, key: str) -> str:
        value: str = self.take(key, str)
        if not _SHA256.fullmatch(value):
            raise ManifestError(f"{self.where}: {key} is {value!r}; allowed: 64 hex digits")
        return value


def backend_kind(backend: str) -> str:
    """The device kind of a manifest's backend: cpu, hip or cuda."""
    return KINDS[backend]

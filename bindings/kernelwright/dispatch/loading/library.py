"""Kernel libraries on disk, verified before any of their code runs."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import (
    AbiMismatchError,
    DigestMismatchError,
    LibraryLoadError,
    LibraryNotFoundError,
    ManifestError,
)
from kernelwright.dispatch.core.kernel import KernelEntry, count_of
from kernelwright.dispatch.loading import installed
from kernelwright.dispatch.loading.elf import why_not_loadable
from kernelwright.dispatch.loading.manifest import Manifest, backend_kind
from kernelwright.dispatch.loading.pinned import Pinned
from kernelwright.dispatch.loading.provenance import check_statement
from kernelwright.files.proposals import closest
from kernelwright.files.strict_json import read_json

_MANIFEST = "manifest.json"


@dataclass(frozen=True, repr=False)
class KernelLibrary:
    """A loaded kernel library. Loading runs no kernel and touches no device.

    :ivar path: the library's file.
    :ivar manifest: its manifest.
    :ivar descriptor: pointer to its ``kw_library``; the file stays mapped until the process ends.
    """

    path: Path
    manifest: Manifest
    descriptor: Any  # POINTER(native.LibraryStruct)

    @classmethod
    def load(cls, path: str | os.PathLike[str] | Traversable) -> KernelLibrary:
        """Load a library.

        Checks, in this order: the manifest's schema and ABI version, the library's sha256, the provenance statement
        beside them, that the file is a kernel library of this ABI, and that its kernels match the manifest.

        :param path: a folder with a manifest, a ``manifest.json``, or a library beside its manifest.
        :raises LibraryNotFoundError: if there is no library.
        :raises ManifestError: if the manifest is malformed or contradicts the library.
        :raises AbiMismatchError: if the library was built for another ABI version.
        :raises DigestMismatchError: if library, manifest and statement do not belong together.
        :raises LibraryLoadError: if the dynamic loader refuses the file.
        """
        given = _on_disk(path)
        manifest = Manifest.read(_manifest_of(given))
        library = manifest.path.parent / manifest.library
        if given.suffix == ".so" and given.name != manifest.library:
            raise ManifestError(f"{manifest.path} describes {manifest.library}, not {given.name}")
        descriptor = _open(library, manifest)
        _check_against(manifest, descriptor.contents)
        return cls(library, manifest, descriptor)

    @classmethod
    def load_for(
        cls, device: Device | str, root: str | os.PathLike[str] | Traversable, name: str | None = None
    ) -> KernelLibrary:
        """Load the library under a folder that fits the device best.

        :param device: a device or its name.
        :param root: a folder with ``<arch>/manifest.json`` at any depth.
        :param name: selects one of several libraries for one architecture.
        :raises LibraryNotFoundError: if no library fits; the message lists the architectures that were found.
        :raises AbiMismatchError: if a library that could be meant was built for another ABI version.
        """
        return cls.load(cls.find_for(device, root, name).path)

    @staticmethod
    def find_for(device: Device | str, root: str | os.PathLike[str] | Traversable, name: str | None = None) -> Manifest:
        """The manifest of the library that :meth:`load_for` would load, with its errors; nothing is loaded."""
        device = Device.of(device)
        folder = _on_disk(root)
        if not folder.is_dir():
            raise LibraryNotFoundError(f"{folder} is not a folder; allowed: one with <arch>/{_MANIFEST} in it")
        available = _manifests(sorted(folder.rglob(_MANIFEST)), device, name)
        fitting = _fitting(device, [manifest for manifest in available if name in (None, manifest.name)], str(folder))
        if fitting is None:
            wanted = " or ".join(device.archs) + (f" named {name}" if name else "")
            there = ", ".join(_described(available)) or "none"
            hint = closest(name, {one.name for one in available})
            raise LibraryNotFoundError(f"{folder} has no library for {device} ({wanted}){hint}; it has: {there}")
        return fitting

    @classmethod
    def load_installed(cls, device: Device | str, name: str, package: str = installed.PACKAGE) -> KernelLibrary:
        """Load a library that was installed as a wheel, such as ``kernelwright-kernels-gemm-gfx942``.

        :param device: a device or its name; ``<package>.<name>.<arch>`` is loaded for its best architecture.
        :param name: the library, such as ``gemm``.
        :raises LibraryNotFoundError: if no wheel fits; the message says which are installed and what to do.
        """
        device = Device.of(device)
        available = _manifests(installed.manifests(f"{package}.{name}"), device, None)
        fitting = _fitting(device, available, f"{package}.{name}")
        if fitting is None:
            raise LibraryNotFoundError(
                f"no wheel with {name} kernels for {device} ({' or '.join(device.archs)}) is installed; "
                f"installed are kernels for: {', '.join(_described(available)) or 'nothing'}; "
                f"{installed.advice(package, name, device.archs)}"
            )
        return cls.load(fitting.path)

    @property
    def name(self) -> str:
        """Name of the library."""
        return self.manifest.name

    @property
    def arch(self) -> str:
        """The architecture of all its kernels."""
        return self.manifest.arch

    @property
    def kind(self) -> str:
        """The kind of device that it runs on: ``cpu``, ``cuda`` or ``hip``."""
        return backend_kind(self.manifest.backend)

    @property
    def fp8_fnuz(self) -> bool:
        """Whether its kernels read 8-bit floats in the FNUZ formats instead of the OCP ones."""
        return native.fp8_is_fnuz(self.descriptor)

    @property
    def kernels(self) -> tuple[KernelEntry, ...]:
        """Its kernels, in the order of the manifest."""
        return self.manifest.kernels

    def __str__(self) -> str:
        """A summary, such as ``gemm for gfx942: 4 kernels``."""
        return f"{self.name} for {self.arch}: {count_of(len(self.kernels), 'kernel')}"

    def __repr__(self) -> str:
        """The summary with the file."""
        return f"<KernelLibrary {self} at {self.path}>"


def _manifests(paths: Iterable[Path], device: Device, name: str | None) -> list[Manifest]:
    """Readable manifests; one with another ABI version is an error only if the device or name could refer to it."""
    readable = []
    for path in paths:
        try:
            readable.append(Manifest.read(path))
        except AbiMismatchError:
            other = read_json(path)
            if other.get("arch") in device.archs and name in (None, other.get("name")):
                raise
    return readable


def _fitting(device: Device, manifests: Sequence[Manifest], where: str) -> Manifest | None:
    """The manifest for the device's best architecture. LibraryNotFoundError if several match that architecture."""
    for arch in device.archs:
        fitting = [manifest for manifest in manifests if manifest.arch == arch]
        if len(fitting) > 1:
            names = ", ".join(f"{manifest.name} ({manifest.path.parent})" for manifest in fitting)
            raise LibraryNotFoundError(f"{where} has several libraries for {arch}: {names}; pass name=")
        if fitting:
            return fitting[0]
    return None


def _described(manifests: Iterable[Manifest]) -> list[str]:
    """Libraries and their targets, such as ``gemm for gfx942 (AMD Instinct MI300 series)``."""
    return sorted({f"{one.name} for {one.target}" for one in manifests})


def _on_disk(path: str | os.PathLike[str] | Traversable) -> Path:
    if isinstance(path, str | os.PathLike):
        return Path(path)
    # A resource inside an archive: the loader needs files, which last until the process ends.
    folder = Path(tempfile.mkdtemp(prefix="kernelwright-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _unpack(path, folder)


def _unpack(resource: Traversable, folder: Path) -> Path:
    target = folder / resource.name
    if resource.is_dir():
        target.mkdir()
        for entry in resource.iterdir():
            _unpack(entry, target)
    else:
        target.write_bytes(resource.read_bytes())
    return target


def _manifest_of(path: Path) -> Path:
    if not path.exists():
        raise LibraryNotFoundError(f"{path} is not there; allowed: a folder with {_MANIFEST}, that file, or the .so")
    if path.is_dir():
        if not (path / _MANIFEST).is_file():
            raise LibraryNotFoundError(f"{path} has no {_MANIFEST}; is it the folder of one architecture?")
        return path / _MANIFEST
    return path.with_name(_MANIFEST) if path.suffix == ".so" else path


def _open(path: Path, manifest: Manifest) -> Any:
    """Compare the library with its manifest and load the very file that was compared."""
    if not path.is_file():
        raise LibraryNotFoundError(f"{path} is not there, though {manifest.path.name} beside it names it")
    with Pinned(path) as file:
        if file.sha256 != manifest.sha256:
            raise DigestMismatchError(
                f"{path} has sha256 {file.sha256}, its manifest says {manifest.sha256}; copy or build both again"
            )
        check_statement(manifest)
        reason = why_not_loadable(file.name)
        if reason:
            raise LibraryLoadError(f"{path} cannot be loaded: {reason}; copy or build it again")
        try:
            opened = file.load()
        except OSError as error:
            raise LibraryLoadError(f"{path} cannot be loaded: {error}") from error
    try:
        get = opened.kw_library_get
    except AttributeError:
        raise LibraryLoadError(f"{path} does not export kw_library_get: it is no kernel library") from None
    get.restype, get.argtypes = ctypes.POINTER(native.LibraryStruct), []
    descriptor = get()
    if not descriptor:
        raise LibraryLoadError(f"{path}: kw_library_get returned null")
    version = descriptor.contents.abi_version
    if version != native.ABI_VERSION:
        raise AbiMismatchError(f"{path} speaks ABI version {version}; allowed: {native.ABI_VERSION}; rebuild it")
    return descriptor


def _check_against(manifest: Manifest, library: native.LibraryStruct) -> None:
    arch = library.arch.contents
    if arch.name.decode() != manifest.arch:
        raise ManifestError(f"{manifest.path}: arch is {manifest.arch}, the library's is {arch.name.decode()}")
    kind = native.BACKENDS.get(arch.backend)
    if kind != backend_kind(manifest.backend):
        raise ManifestError(f"{manifest.path}: backend is {manifest.backend}, the library runs on {kind}")
    built = {_identity(library.kernels[index].contents) for index in range(library.kernel_count)}
    stated = {(entry.identity, entry.name) for entry in manifest.kernels}
    if built != stated or len(stated) != len(manifest.kernels):
        raise ManifestError(
            f"{manifest.path}: its kernels are not the library's: only in the manifest: {_names(stated - built)}; "
            f"only in the library: {_names(built - stated)}"
        )


def _identity(kernel: native.KernelStruct) -> tuple[str, str]:
    return kernel.identity.decode(), kernel.name.decode()


def _names(kernels: Iterable[tuple[str, str]]) -> str:
    return ", ".join(sorted(f"{name} ({identity[:12]}…)" for identity, name in kernels)) or "none"

"""Find kernel libraries installed as wheels: ``<package>/<library>/<arch>/manifest.json`` on ``sys.path``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kernelwright.files.arch_files import shipped_with
from kernelwright.files.proposals import closest

PACKAGE = "kernelwright_kernels"


def folders(package: str) -> list[Path]:
    """Folders of a package; empty if there is no such package. Only its parents are imported."""
    parent, _, _ = package.rpartition(".")
    if parent and not folders(parent):
        return []
    spec = find_spec(package)
    return [Path(path) for path in (spec.submodule_search_locations or ())] if spec else []


def manifests(package: str = PACKAGE) -> Iterator[Path]:
    """Manifests of all libraries below a package, sorted within each of its folders."""
    for folder in folders(package):
        yield from sorted(folder.rglob("manifest.json"))


def advice(package: str, name: str, archs: Iterable[str]) -> str:
    """Advice if no library is installed for ``archs``; it names only packages that ship."""
    operations = import_module("kernelwright.dispatch.operation_methods").OPERATIONS  # which imports this module
    shipped = shipped_with(name) if package == PACKAGE and name in operations else ()
    if not shipped:
        close = closest(name, operations).strip(" ()") if package == PACKAGE else ""
        hint = f"{close} Otherwise " if close else ""
        return f"{hint}install the wheel that your project builds for it (kernel_wheels, docs/packaging.md)"
    for arch in archs:
        if arch in shipped:
            return f"pip install {package}-{name}-{arch}".replace("_", "-")
    return f"there are wheels for {', '.join(shipped)}; for others build one (kernel_wheels, docs/packaging.md)"

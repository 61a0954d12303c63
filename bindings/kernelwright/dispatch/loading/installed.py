"""Finds kernel libraries installed as wheels: ``<package>/<library>/<arch>/manifest.json`` on ``sys.path``."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "kernelwright_kernels"


def folders(package: str) -> list[Path]:
    """Folders of a package; none if there is no such package. Only its parents are imported."""
    parent, _, _ = package.rpartition(".")
    if parent and not folders(parent):
        return []
    spec = find_spec(package)
    return [Path(path) for path in (spec.submodule_search_locations or ())] if spec else []


def manifests(package: str = PACKAGE) -> Iterator[Path]:
    """Manifests of all libraries below a package, sorted in each of its folders."""
    for folder in folders(package):
        yield from sorted(folder.rglob("manifest.json"))

"""Description of the library that a figure is about: the shipped one, or one built for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SHIPPED = Path(__file__).resolve().parents[1] / "tests" / "goldens"
SHIPPED, TEST = "shipped library", "test library"


def describe(manifest: Mapping[str, Any], shipped: Path = _SHIPPED) -> dict[str, Any]:
    """Kind (SHIPPED if its kernels are exactly those of a shipped set, else TEST), kernels, toolchains, digest.

    ``shipped`` is a folder of golden files, one per operation.
    """
    names = {kernel["name"] for kernel in manifest["kernels"]}
    return {
        "kind": SHIPPED if names in _shipped_names(manifest["arch"], shipped) else TEST,
        "arch": manifest["arch"],
        "kernels": len(names),
        "toolchains": manifest["toolchains"],
        "sha256": manifest["sha256"],
    }


def _shipped_names(arch: str, shipped: Path) -> list[set[str]]:
    known = (json.loads(path.read_text()) for path in sorted(shipped.glob("*.json")))
    return [set(archs[arch]["kernels"]) for archs in known if arch in archs]

"""Which library a figure is about: the one that ships, or one that was built for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_SHIPPED = Path(__file__).resolve().parents[1] / "tests" / "goldens" / "shipped.json"
SHIPPED, TEST = "shipped library", "test library"


def describe(manifest: Mapping[str, Any], shipped: Path = _SHIPPED) -> dict[str, Any]:
    """Kind (SHIPPED if its kernels are exactly those of the shipped set, else TEST), kernels, toolchains, digest."""
    names = {kernel["name"] for kernel in manifest["kernels"]}
    return {
        "kind": SHIPPED if names == set(_shipped_names(manifest["arch"], shipped)) else TEST,
        "arch": manifest["arch"],
        "kernels": len(names),
        "toolchains": manifest["toolchains"],
        "sha256": manifest["sha256"],
    }


def _shipped_names(arch: str, shipped: Path) -> Iterable[str]:
    return json.loads(shipped.read_text())[arch]["kernels"]

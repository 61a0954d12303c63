"""Headers and launchers of an installed kernelwright wheel, for builds that have no checkout to take them from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelwright.codegen.violations import SpecError

_INSTALLED = Path(__file__).parents[2] / "native"


def respond_headers(raw: dict[str, Any], root: Path = _INSTALLED) -> dict[str, Any]:
    """Return ``{"files": {path: text}}`` with paths such as ``include/kernelwright/abi.h``. SpecError in a checkout."""
    if set(raw) != {"stage"}:
        raise SpecError("a request of stage 'headers' has no other key")
    folders = (root / folder for folder in ("include", "launchers"))
    paths = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    if not paths:
        raise SpecError(f"{root}/include holds no headers; install the kernelwright wheel, or use a checkout's headers")
    return {"files": {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths}}

"""The backends by the name that architecture files use, each imported when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

from kernelwright.arch import Arch
from kernelwright.codegen.backends.base import Backend, Toolchain
from kernelwright.codegen.violations import SpecError

ToolchainChoice = str | Mapping[str, Any]

DEFAULT_TOOLCHAINS: Mapping[str, ToolchainChoice] = {"host": "zig", "hip": "wheel", "cuda": "clang"}

_TOOLCHAINS = {
    "host": ("kernelwright.codegen.toolchains.host", "HostToolchain", ("zig", "system")),
    "hip": ("kernelwright.codegen.toolchains.hip", "HipToolchain", ("wheel", "stock", "rocm")),
    "cuda": ("kernelwright.codegen.toolchains.cuda", "CudaToolchain", ("clang", "stock", "nvcc", "system-nvcc")),
}
_BACKENDS = {
    "cpu": ("kernelwright.codegen.backends.cpu", "CpuBackend", ("host",)),
    "ck_tile": ("kernelwright.codegen.backends.ck_tile", "CkTileBackend", ("hip", "host")),
    "cutlass": ("kernelwright.codegen.backends.cutlass", "CutlassBackend", ("cuda", "host")),
}


def backend_names() -> tuple[str, ...]:
    """Every backend, sorted."""
    return tuple(sorted(_BACKENDS))


def backend_for(arch: Arch, toolchains: Mapping[str, ToolchainChoice], for_editor: bool = False) -> Backend:
    """The backend of ``arch`` with the toolchains chosen for it; see :func:`toolchain` for the choices.

    ``for_editor`` gives commands for an editor's own clang in place of those that a build runs.
    """
    module, name, needs = _backend(arch.backend)
    made = [toolchain(kind, toolchains.get(kind, DEFAULT_TOOLCHAINS[kind])) for kind in needs]
    if for_editor:
        made = [one.for_editor() for one in made]
    return cast(Backend, getattr(importlib.import_module(module), name)(*made))


def toolchains_for(arch: Arch, toolchains: Mapping[str, ToolchainChoice]) -> dict[str, Toolchain]:
    """The toolchains that take part in a build for ``arch``, by kind."""
    return {kind: toolchain(kind, toolchains.get(kind, DEFAULT_TOOLCHAINS[kind])) for kind in _backend(arch.backend)[2]}


def toolchain(kind: str, choice: ToolchainChoice) -> Toolchain:
    """One toolchain: ``"zig"``, or ``{"choice": "system", …}`` with the arguments of that factory.

    Raises SpecError for a kind or choice that does not exist.
    """
    if kind not in _TOOLCHAINS:
        raise SpecError(f"unknown toolchain kind {kind!r}; allowed: {', '.join(_TOOLCHAINS)}")
    module, name, choices = _TOOLCHAINS[kind]
    options = dict(choice) if isinstance(choice, Mapping) else {"choice": choice}
    picked = options.pop("choice", None)
    if picked not in choices:
        raise SpecError(f"unknown {kind} toolchain {picked!r}; allowed: {', '.join(choices)}")
    factory = getattr(getattr(importlib.import_module(module), name), picked.replace("-", "_"))
    try:
        return cast(Toolchain, factory(**options))
    except (TypeError, ValueError) as error:
        raise SpecError(f"{kind} toolchain {picked!r}: {error}") from None


def _backend(name: str) -> tuple[str, str, tuple[str, ...]]:
    if name not in _BACKENDS:
        raise SpecError(f"unknown backend {name!r}; allowed: {', '.join(_BACKENDS)}")
    return _BACKENDS[name]

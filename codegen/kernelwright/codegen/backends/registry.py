"""Backends by the name that architecture files use, each imported on first use."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, cast

from kernelwright.arch import Arch
from kernelwright.codegen.backends.base import Backend, Toolchain
from kernelwright.codegen.toolchains.system_tools import SYSTEM_TOOLS, system_options
from kernelwright.codegen.violations import SpecError, closest

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
    """Return the names of all backends, sorted."""
    return tuple(sorted(_BACKENDS))


def backend_for(arch: Arch, toolchains: Mapping[str, ToolchainChoice], for_editor: bool = False) -> Backend:
    """Return the backend of ``arch`` with the toolchains chosen for it; see :func:`toolchain` for the choices.

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
    """Return one toolchain: ``"zig"``, ``"system"`` or ``"system:/usr/bin/g++"``, or ``{"choice": "system", …}``.

    A word is resolved on this machine, see :func:`kernelwright.codegen.toolchains.system_tools.system_options`; an
    object has every argument of the factory, fingerprints included. Raises SpecError for an unknown kind or choice,
    missing or unknown arguments, and a program that does not run.
    """
    if kind not in _TOOLCHAINS:
        raise SpecError(
            f"unknown toolchain kind {kind!r}{closest(kind, _TOOLCHAINS)}; allowed: {', '.join(_TOOLCHAINS)}"
        )
    module, name, choices = _TOOLCHAINS[kind]
    options = dict(choice) if isinstance(choice, Mapping) else {"choice": choice}
    asked = options.pop("choice", None)
    picked, colon, path = asked.partition(":") if isinstance(asked, str) else (asked, "", "")
    if picked not in choices or (colon and not path):
        hint = closest(picked, choices)
        raise SpecError(f"unknown {kind} toolchain {asked!r}{hint}; allowed: {', '.join(toolchain_words(kind))}")
    if not isinstance(choice, Mapping):
        options = dict(system_options(kind, picked, path))
    factory = getattr(getattr(importlib.import_module(module), name), picked.replace("-", "_"))
    needs = tuple(inspect.signature(factory).parameters)
    if set(options) != set(needs):
        given, needed = (", ".join(names) or "nothing" for names in (sorted(options), needs))
        raise SpecError(
            f"{kind} toolchain {picked!r}: takes {needed} beside choice; given: {given}; or name it by a word"
        )
    try:
        return cast(Toolchain, factory(**options))
    except (TypeError, ValueError) as error:
        raise SpecError(f"{kind} toolchain {picked!r}: {error}") from None


def toolchain_words(kind: str) -> tuple[str, ...]:
    """Return the allowed words for a kind: ``("zig", "system[:PATH]")``."""
    return tuple(f"{name}[:PATH]" if (kind, name) in SYSTEM_TOOLS else name for name in _TOOLCHAINS[kind][2])


def _backend(name: str) -> tuple[str, str, tuple[str, ...]]:
    if name not in _BACKENDS:
        raise SpecError(f"unknown backend {name!r}{closest(name, _BACKENDS)}; allowed: {', '.join(_BACKENDS)}")
    return _BACKENDS[name]

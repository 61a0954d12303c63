"""GEMM sets by name: ``essential``, ``release`` and ``default``, written per architecture, and the preselected ones."""

from __future__ import annotations

import functools
import importlib.resources
import json
from importlib.resources.abc import Traversable
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.operation import Expansion
from kernelwright.codegen.operations.gemm.kernel_sets import GRAMMAR, expand_kernel_set, kernel_set_names
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.tiled.sections import archs_with


class GemmSets:
    """The sets as :class:`kernelwright.codegen.operation.KernelSets` asks for them."""

    help = f"default, essential, release and {GRAMMAR}"

    def names(self) -> tuple[str, ...]:
        """The written sets, then the preselected ones."""
        return _all_names()

    def archs(self, name: str) -> tuple[str, ...]:
        """The shipped architectures that a set has kernels for, sorted; EmptyExpansionError if none has."""
        if name in rule_set_names():
            return tuple(sorted(_read(name)))
        return archs_with(lambda arch: expand_kernel_set(name, arch))

    def expand(self, name: str, arch: Arch) -> Expansion:
        """The kernels of a set; EmptyExpansionError, with the reasons, where it has none for ``arch``."""
        if name not in rule_set_names():
            return expand_kernel_set(name, arch)
        configs = _read(name).get(arch.name)
        if not configs:
            known = ", ".join(sorted(_read(name)))
            raise EmptyExpansionError(f"rule set {name!r} has no kernels for {arch.name}; it knows {known}")
        kernels = tuple(dict.fromkeys(kernel for config in configs for kernel in expand_config(config, arch).kernels))
        return Expansion(kernels)

    def lacking(self, name: str, arch: Arch) -> tuple[str, ...]:
        """Nothing: no set promises to contain another one."""
        return ()


@functools.cache
def rule_set_names() -> tuple[str, ...]:
    """The sets that are written per architecture, sorted."""
    return tuple(sorted(item.name.removesuffix(".json") for item in _folder().iterdir() if item.name.endswith(".json")))


@functools.cache
def _all_names() -> tuple[str, ...]:
    return (*rule_set_names(), *kernel_set_names())


@functools.cache
def _read(name: str) -> dict[str, list[Any]]:
    raw: dict[str, list[Any]] = json.loads(_folder().joinpath(f"{name}.json").read_text("utf-8"))
    return raw


def _folder() -> Traversable:
    return importlib.resources.files("kernelwright.codegen.operations.gemm").joinpath("data", "rulesets")

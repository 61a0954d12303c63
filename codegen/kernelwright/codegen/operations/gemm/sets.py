"""GEMM sets by name: those written per architecture, such as ``coverage``, and the preselected ones."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import Layout
from kernelwright.codegen.operation import CONTAINED_SETS, Expansion, KernelSets
from kernelwright.codegen.operations.gemm.kernel_sets import (
    DTYPES,
    GRAMMAR,
    expand_kernel_set,
    kernel_set_names,
    siblings,
)
from kernelwright.codegen.selecting.expand import EmptyExpansionError, archs_with, expand_config


class GemmSets(KernelSets):
    """The sets, as :class:`kernelwright.codegen.operation.KernelSets` describes them."""

    help = f"default, essential, coverage, release and {GRAMMAR}"
    examples = ("default", "essential")

    def names(self) -> tuple[str, ...]:
        """The written sets, then the preselected ones."""
        return _all_names()

    def holding(self, values: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """The sets of the data types and layouts."""
        dtypes = [dtype for dtype in map(str, DTYPES) if dtype in values.get("dtype", DTYPES)]
        layouts = [layout for layout in map(str, Layout) if layout in values.get("layout", tuple(Layout))]
        return ("coverage", "default", *(f"{dtype}_{layout}_all" for dtype in dtypes for layout in layouts))

    def archs(self, name: str) -> tuple[str, ...]:
        """Return the shipped architectures that a set has kernels for, sorted; EmptyExpansionError if none has."""
        if name in rule_set_names():
            return tuple(sorted({arch for part in _parts(name) for arch in _read(part)}))
        return archs_with(lambda arch: expand_kernel_set(name, arch))

    def expand(self, name: str, arch: Arch) -> Expansion:
        """Return the kernels of a set; EmptyExpansionError, with the reasons, if it has none for ``arch``."""
        if name not in rule_set_names():
            return _preselected(name, arch)
        configs = [config for part in _parts(name) for config in _read(part).get(arch.name, ())]
        if not configs:
            known = ", ".join(self.archs(name))
            raise EmptyExpansionError(f"rule set 'gemm:{name}' has no kernels for {arch.name}; it knows {known}")
        kernels = tuple(dict.fromkeys(kernel for config in configs for kernel in expand_config(config, arch).kernels))
        return Expansion(kernels)


def _preselected(name: str, arch: Arch) -> Expansion:
    try:
        return expand_kernel_set(name, arch)
    except EmptyExpansionError as error:
        others = siblings(name, arch)
        if not others:
            raise
        hint = f"sets of the same data type and layout for {arch.name}: {', '.join(others)}"
        raise EmptyExpansionError(f"{error}\n{hint}") from None


@functools.cache
def rule_set_names() -> tuple[str, ...]:
    """Return the sets that are written per architecture, sorted."""
    return tuple(sorted(item.name.removesuffix(".json") for item in _folder().iterdir() if item.name.endswith(".json")))


@functools.cache
def _all_names() -> tuple[str, ...]:
    return (*rule_set_names(), *kernel_set_names())


def _parts(name: str) -> tuple[str, ...]:
    return CONTAINED_SETS.get(name, (name,))


@functools.cache
def _read(name: str) -> dict[str, list[Any]]:
    raw: dict[str, list[Any]] = json.loads(_folder().joinpath(f"{name}.json").read_text("utf-8"))
    return raw


def _folder() -> Traversable:
    return importlib.resources.files("kernelwright.codegen.operations.gemm").joinpath("data", "rulesets")

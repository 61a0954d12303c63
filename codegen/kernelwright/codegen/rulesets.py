"""Sets by name: ``essential`` and ``default``, written per architecture, and the preselected sets of kernel_sets."""

from __future__ import annotations

import functools
import importlib.resources
import json
from importlib.resources.abc import Traversable
from typing import Any

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.expand import EmptyExpansionError, Expansion, expand_config
from kernelwright.codegen.kernel_sets import expand_kernel_set, is_kernel_set, unknown_set
from kernelwright.codegen.spec import Kernel
from kernelwright.codegen.violations import SpecError


@functools.cache
def rule_set_names() -> tuple[str, ...]:
    """The sets that are written per architecture, sorted."""
    return tuple(sorted(item.name.removesuffix(".json") for item in _folder().iterdir() if item.name.endswith(".json")))


def rule_set_archs(name: str) -> tuple[str, ...]:
    """The shipped architectures that a set has kernels for, sorted.

    Raises SpecError for an unknown set and EmptyExpansionError, with the reasons, for one that none has.
    """
    if not is_kernel_set(name):
        return tuple(sorted(_read(name)))
    found, refused = [], []
    for arch in archs.names():
        try:
            expand_kernel_set(name, archs.load(arch))
            found.append(arch)
        except EmptyExpansionError as error:
            refused.append(str(error))
    if not found:
        raise EmptyExpansionError("\n".join(refused))
    return tuple(found)


def expand_rule_set(name: object, arch: Arch) -> tuple[Kernel, ...]:
    """The kernels of a set, see :func:`expand_set`."""
    return expand_set(name, arch).kernels


def expand_set(name: object, arch: Arch) -> Expansion:
    """The kernels of a set, in its order, every one legal on ``arch``; and what rules dropped of a preselected set.

    Raises SpecError for an unknown set and EmptyExpansionError, with the reasons, where it has no kernels for ``arch``.
    """
    if not isinstance(name, str):
        raise SpecError(f"a set is a name, not {name!r}; allowed: {', '.join(rule_set_names())}, fp16_rcr_compute, …")
    if is_kernel_set(name):
        return expand_kernel_set(name, arch)
    configs = _read(name).get(arch.name)
    if not configs:
        known = ", ".join(sorted(_read(name)))
        raise EmptyExpansionError(f"rule set {name!r} has no kernels for {arch.name}; it knows {known}")
    kernels = tuple(dict.fromkeys(kernel for config in configs for kernel in expand_config(config, arch).kernels))
    return Expansion(kernels)


@functools.cache
def _read(name: str) -> dict[str, list[Any]]:
    if name not in rule_set_names():
        raise unknown_set(name, rule_set_names())
    raw: dict[str, list[Any]] = json.loads(_folder().joinpath(f"{name}.json").read_text("utf-8"))
    return raw


def _folder() -> Traversable:
    return importlib.resources.files("kernelwright.codegen").joinpath("data", "rulesets")

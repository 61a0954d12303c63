"""Rule sets: kernels that we chose, by set and architecture, in the grammar of configurations."""

from __future__ import annotations

import functools
import importlib.resources
import json
from importlib.resources.abc import Traversable
from typing import Any

from tilewright.arch import Arch
from tilewright.codegen.expand import EmptyExpansionError, expand_config
from tilewright.codegen.spec import Kernel
from tilewright.codegen.specs import closest
from tilewright.codegen.violations import SpecError


@functools.cache
def rule_set_names() -> tuple[str, ...]:
    """The rule sets that exist, sorted."""
    return tuple(sorted(item.name.removesuffix(".json") for item in _folder().iterdir() if item.name.endswith(".json")))


def rule_set_archs(name: str) -> tuple[str, ...]:
    """The architectures that a rule set has kernels for, sorted; SpecError for an unknown set."""
    return tuple(sorted(_read(name)))


def expand_rule_set(name: object, arch: Arch) -> tuple[Kernel, ...]:
    """The kernels of a rule set, in the order of its file; every one is legal on ``arch``.

    Raises SpecError for an unknown set and EmptyExpansionError for an architecture that the set does not know.
    """
    if not isinstance(name, str):
        raise SpecError(f"a rule set is a name, not {name!r}; allowed: {', '.join(rule_set_names())}")
    configs = _read(name).get(arch.name)
    if not configs:
        known = ", ".join(sorted(_read(name)))
        raise EmptyExpansionError(f"rule set {name!r} has no kernels for {arch.name}; it knows {known}")
    return tuple(dict.fromkeys(kernel for config in configs for kernel in expand_config(config, arch).kernels))


@functools.cache
def _read(name: str) -> dict[str, list[Any]]:
    if name not in rule_set_names():
        known = ", ".join(rule_set_names())
        raise SpecError(f"unknown rule set {name!r}{closest(name, rule_set_names())}; allowed: {known}")
    raw: dict[str, list[Any]] = json.loads(_folder().joinpath(f"{name}.json").read_text("utf-8"))
    return raw


def _folder() -> Traversable:
    return importlib.resources.files("tilewright.codegen").joinpath("data", "rulesets")

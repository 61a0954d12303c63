"""Advice for problems that no kernel serves: the nearest kernel, what it lacks, and how to build one that serves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from kernelwright.dispatch.core import operation
from kernelwright.dispatch.core.kernel import KernelEntry

_SHOWN = 4


class Kernels(Protocol):
    """The part of a dispatcher that this module uses."""

    @property
    def kernels(self) -> Mapping[str, KernelEntry]:
        """Kernels by identity."""

    def explain(self, problem: Any) -> str:
        """The ranking of every kernel, as JSON."""


def advice(problem: Any, core: Kernels) -> tuple[str, ...]:
    """Lines for :class:`NoKernelError`. The nearest kernel has the fewest fields that differ from the request."""
    make = f"to make one: registry.add_problems([{shortest(problem)}]) of a kernelwright.jit.Registry"
    lines = (f"{make}, or kernel_set(problems=…) in a BUILD file; explain(problem) has every kernel's reason",)
    asked = operation.of_problem(problem).asked
    if asked is None:
        return lines
    ranked = json.loads(core.explain(problem))
    stage = ranked.get("stages", [ranked])[-1]
    places = [(core.kernels[one["identity"]], one["reason"]) for one in stage["kernels"]]
    compared = [(_differing(asked(problem, kernel.spec), kernel.spec), kernel, reason) for kernel, reason in places]
    known = [one for one in compared if "op" not in one[0] and "tile" in one[1].spec]
    if not known:
        return lines
    differing, kernel, reason = min(known, key=lambda one: len(one[0]))  # on ties, the native ranking's first
    why = _differences(differing, kernel.spec) if differing else f"which refuses it: {reason}"
    return f"nearest: {kernel.short}, {why}", *lines


def in_short(reason: str, kernels: Mapping[str, KernelEntry]) -> str:
    """``reason`` with short names of kernels in place of full ones."""
    named = {kernel.name: kernel for kernel in kernels.values()}
    return re.sub(r"[\w.]+", lambda word: named[word[0]].short if word[0] in named else word[0], reason)


def shortest(problem: Any) -> str:
    """The constructor call that makes an equal problem with the fewest fields."""
    given = operation.fewest_fields(problem)
    return f"{type(problem).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _differing(asked: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fields whose values differ from the spec's; features that a spec does not mention are off."""
    return {name: value for name, value in asked.items() if spec.get(name, _off(value)) != value}


def _off(value: Any) -> Any:
    if isinstance(value, bool | int):
        return type(value)()
    return "none"


def _differences(differing: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    listed = [f"{name} {spec.get(name, _off(value))}, not {value}" for name, value in differing.items()]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return f"which has {'; '.join(listed[:_SHOWN])}{more}"

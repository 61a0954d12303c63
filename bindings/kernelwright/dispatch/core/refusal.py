"""Advice for problems that no kernel serves: the nearest kernel, what it lacks, and how to build one that serves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from kernelwright.dispatch.core import operation
from kernelwright.dispatch.core.kernel import KernelEntry
from kernelwright.dispatch.loading import installed

_SHOWN = 4
_TELLING = {"tile", "dtype"}  # a spec with neither says nothing
_HEAD = re.compile(r"none of \d+ kernels serves .*? \(selection .*?\): ")
_OF_ANOTHER = re.compile(r"the problem's operation is (.*), this kernel's is ")


@dataclass(frozen=True)
class _Refused:
    kernel: KernelEntry
    reason: str
    differing: Mapping[str, Any]


class Kernels(Protocol):
    """The part of a dispatcher that this module uses."""

    @property
    def kernels(self) -> Mapping[str, KernelEntry]:
        """Kernels by identity."""

    @property
    def device(self) -> Any:
        """The device, whose text is its name."""

    def explain(self, problem: Any) -> str:
        """The ranking of every kernel, as JSON."""


def lines(problem: Any, core: Kernels, said: str) -> tuple[str, ...]:
    """Lines for :class:`NoKernelError`: the reason of the nearest kernel, then advice.

    The nearest kernel has the fewest fields that differ from the request. ``said`` is the native reason, which names
    several kernels; it stays where specs do not tell which is nearest, and where a kernel was asked for by name.
    """
    make = f"to make one: registry.add_problems([{shortest(problem)}]) of a kernelwright.jit.Registry"
    make += ", or kernel_set(problems=…) in a BUILD file; explain(problem) has every kernel's reason"
    ranked = json.loads(core.explain(problem))
    stage = ranked.get("stages", [ranked])[-1]
    refused = [(core.kernels[one["identity"]], str(one["reason"])) for one in stage["kernels"] if one["reason"]]
    own = [one for one in refused if not _OF_ANOTHER.match(one[1])]
    head = _HEAD.match(said)
    if refused and not own and head is not None:
        return (f"{head[0]}{_no_library(refused)}", _library_of(problem, core), make)
    nearest = _nearest(problem, own)
    if head is None or nearest is None or ranked.get("selection") == "explicit":  # then the kernel has its own reason
        return (in_short(said, core.kernels), *_difference(nearest), make)
    return (f"{head[0]}{nearest.kernel.short}: {nearest.reason}", *_difference(nearest), make)


def _no_library(refused: Sequence[tuple[KernelEntry, str]]) -> str:
    match = _OF_ANOTHER.match(refused[0][1])
    assert match is not None  # of all of them
    return f"no library in use has kernels of {match[1]}"


def _library_of(problem: Any, core: Kernels) -> str:
    """The line on the library that has kernels of an operation, and on its wheel."""
    operations = import_module("kernelwright.dispatch.operation_methods").OPERATIONS  # which imports this module
    named = re.findall(r"\w+", operation.of_problem(problem).name)
    name = next((one for one in operations if one in named), None)
    if name is None:
        return "load a library that has them, and give it to the dispatcher too"
    wheel = installed.advice(installed.PACKAGE, name, [one.arch for one in core.kernels.values()])
    call = f"KernelLibrary.load_installed({str(core.device)!r}, {name!r})"
    return f"give the dispatcher {call} too; if no such wheel is installed: {wheel}"


def _nearest(problem: Any, refused: Sequence[tuple[KernelEntry, str]]) -> _Refused | None:
    """The kernel with the fewest differing fields; on ties, the native ranking's first. None if no spec is known."""
    asked = operation.of_problem(problem).asked
    if asked is None:
        return None
    compared = [_Refused(kernel, why, _differing(asked(problem, kernel.spec), kernel.spec)) for kernel, why in refused]
    known = [one for one in compared if "op" not in one.differing and _TELLING & one.kernel.spec.keys()]
    return min(known, key=lambda one: len(one.differing), default=None)


def _difference(nearest: _Refused | None) -> tuple[str, ...]:
    """The line on the nearest kernel's fields; none where they are those that the problem requires."""
    if nearest is None or not nearest.differing:
        return ()
    return (f"nearest: {nearest.kernel.short}, {_differences(nearest.differing, nearest.kernel.spec)}",)


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

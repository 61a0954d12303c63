"""Finds the legal kernel nearest to one that an architecture refuses."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel, Spec
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError

MAX_CHECKS = 250
"""The most specs that one search validates."""

MAX_VALUES = 12
"""Values of each field that it tries, closest first. A search takes tenths of a second at most."""

_STEPS = tuple(2**power for power in range(8))


def nearest_legal(kernel: Kernel, arch: Arch) -> Kernel | None:
    """The legal kernel of ``arch`` closest to ``kernel`` that the search finds; None if its operation has none there.

    The search takes specs in order of distance from the requested one and changes the fields that violations of the
    last spec name, to values of the operation's sets and to rounded ones. If it reaches :data:`MAX_CHECKS`, the nearest
    kernel of the sets is moved towards ``kernel`` field by field, as far as it stays legal.
    """
    legal = _legal(kernel.spec.op, arch)
    if not validate(kernel, arch):
        return kernel
    pool = _values(kernel.spec, legal)
    nearest = _search(kernel, arch, pool)
    if nearest is None and legal:
        start = min(legal, key=lambda spec: distance(kernel.spec, spec))
        nearest = _moved(start, kernel, arch)
    return nearest


def changes(kernel: Kernel, nearest: Kernel) -> dict[str, str]:
    """Return the fields in which ``nearest`` differs from ``kernel``, with its values as messages show them."""
    before, after = _fields(kernel.spec), _fields(nearest.spec)
    return {name: shown(value) for name, value in after.items() if value != before[name]}


def shown(value: Any) -> str:
    """Return ``128x64x32`` for extents, else the value as text."""
    return "x".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def distance(asked: Spec, spec: Spec) -> float:
    """The distance: doublings of integers, 4 per flag or word, 64 per field in ``computed``; 0 for equal specs."""
    after = _fields(spec)
    return sum(_apart(name in asked.computed, value, after[name]) for name, value in _fields(asked).items())


def _apart(computed: bool, one: Any, other: Any) -> float:
    if one == other:
        return 0.0
    if isinstance(one, dict):
        return sum(_apart(computed, value, other[axis]) for axis, value in one.items())
    if type(one) is int and type(other) is int and one > 0 and other > 0:
        return abs(math.log2(one / other))
    return 64.0 if computed else 4.0


def _fields(spec: Spec) -> dict[str, Any]:
    """Return every field, including those at their defaults; values of models as dicts."""
    values = ((name, getattr(spec, name)) for name in type(spec).model_fields)
    return {name: value.model_dump() if isinstance(value, BaseModel) else value for name, value in values}


_known: dict[tuple[str, str], tuple[Arch, tuple[Spec, ...]]] = {}  # legal specs by operation and architecture


def _legal(op: str, arch: Arch) -> tuple[Spec, ...]:
    before = _known.get((op, arch.name))
    if before is None or before[0] is not arch:
        _known[op, arch.name] = before = (arch, _of_sets(op, arch))
    return before[1]


def _of_sets(op: str, arch: Arch) -> tuple[Spec, ...]:
    sets = operation(op).sets
    by_identity: dict[str, Spec] = {}
    for name in sets.examples:
        try:
            by_identity.update((kernel.identity, kernel.spec) for kernel in sets.expand(name, arch).kernels)
        except SpecError:
            continue  # this set has no kernels for the architecture
    return tuple(by_identity.values())


def _values(asked: Spec, legal: tuple[Spec, ...]) -> Mapping[str, list[Any]]:
    """Return other values of each field, closest first."""
    pool: dict[str, list[Any]] = {}
    listed = [_fields(spec) for spec in legal]
    for name, value in _fields(asked).items():
        by_text = {shown(other[name]): other[name] for other in listed}
        if isinstance(value, bool):
            by_text["flipped"] = not value
        for changed in _rounded(value):
            by_text[shown(changed)] = changed
        others = [other for other in by_text.values() if other != value]
        pool[name] = sorted(others, key=lambda other: (_apart(name in asked.computed, value, other), shown(other)))[
            :MAX_VALUES
        ]
    return pool


def _rounded(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for axis, one in value.items():
            yield from ({**value, axis: changed} for changed in _rounded(one))
    elif type(value) is int:
        multiples = (near for step in _STEPS for near in (value // step * step, -(-value // step) * step))
        power = 1 << max(value, 1).bit_length()
        yield from dict.fromkeys((*multiples, *(power >> down for down in range(4) if power >> down)))


def _search(kernel: Kernel, arch: Arch, pool: Mapping[str, list[Any]]) -> Kernel | None:
    asked = _fields(kernel.spec)
    order = itertools.count()
    waiting: list[tuple[float, int, dict[str, Any]]] = [(0.0, next(order), {})]
    seen: set[tuple[tuple[str, str], ...]] = set()
    for _ in range(MAX_CHECKS):
        if not waiting:
            return None
        far, _, changed = heapq.heappop(waiting)
        made = _made(kernel, {**asked, **changed})
        if made is None:
            continue
        violations = validate(made, arch)
        if not violations:
            return made
        blamed = {field.partition(".")[0] for violation in violations for field in violation.field.split(", ")}
        for name in [name for name in pool if name in blamed and name not in changed and name != "op"]:
            for value in pool[name]:
                further = {**changed, name: value}
                key = tuple(sorted((field, shown(one)) for field, one in further.items()))
                if key not in seen:
                    seen.add(key)
                    heapq.heappush(
                        waiting, (far + _apart(name in kernel.spec.computed, asked[name], value), next(order), further)
                    )
    return None


def _moved(start: Spec, kernel: Kernel, arch: Arch) -> Kernel:
    asked, fields = _fields(kernel.spec), _fields(start)
    best = Kernel(arch=arch.name, spec=start)
    improved = True
    while improved:
        improved = False
        for name in fields:
            if fields[name] != asked[name]:
                made = _made(kernel, {**fields, name: asked[name]})
                if made is not None and not validate(made, arch):
                    fields, best, improved = _fields(made.spec), made, True
    return best


def _made(kernel: Kernel, fields: Mapping[str, Any]) -> Kernel | None:
    try:
        return Kernel(arch=kernel.arch, spec=type(kernel.spec).model_validate(fields))
    except ValidationError:
        return None

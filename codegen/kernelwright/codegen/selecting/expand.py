"""Expands a configuration (lists and ranges of values) to every legal kernel that it describes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expansion, operation
from kernelwright.codegen.selecting.specs import parse_spec, stated_operation
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError, Violation, closest

MAX_COMBINATIONS = 1_000_000
MAX_VALUES = 1_000
"""The most values of a configuration field."""

SECTIONS = ("problem", "tile_config", "trait_config")
_RANGE = {"min", "max", "step", "exclude"}
_SECTION_HELP = '[…], {"values": […]} or {"min", "max", "step", "exclude"}'


class EmptyExpansionError(SpecError):
    """A configuration or rule set without a legal kernel."""


def expand_config(config: object, arch: Arch) -> Expansion:
    """Return every legal kernel of a configuration, in the order of its fields and values.

    A configuration is an object with ``op``, the operation, and three sections. ``problem`` holds constants (dtype,
    layout, …; it may hold ``op`` too); ``tile_config`` and ``trait_config`` give each field ``{"values": […]}``, or the
    list alone, or ``{"min", "max", "step", "exclude"}`` (defaults: ``step`` 1, ``exclude`` empty). The operation
    defines the fields, and further keys besides the sections. The kernels are the cartesian product, less what the
    rules of ``arch`` refuse. ``limits`` are read by :mod:`kernelwright.codegen.selecting.selection`.

    Raises SpecError for a malformed configuration and EmptyExpansionError, with the most frequent reasons, if no
    combination is legal.
    """
    kernels: dict[str, Kernel] = {}
    refused = Refused()
    for kernel in iterate_config(config, arch, refused):
        kernels.setdefault(kernel.identity, kernel)
    if not kernels:
        raise EmptyExpansionError(f"none of the {refused.combinations} combinations is legal on {arch.name}:{refused}")
    return Expansion(tuple(kernels.values()), dict(sorted(refused.counts.items())))


def iterate_config(config: object, arch: Arch, refused: Refused | None = None) -> Iterator[Kernel]:
    """Yield the legal kernels of a configuration, see :func:`expand_config`; SpecError if it is malformed."""
    if not isinstance(config, Mapping):
        raise SpecError(f"a configuration is an object with op, {', '.join(SECTIONS)}, not {config!r}")
    problem = config.get("problem")
    constants = problem if isinstance(problem, Mapping) else {}
    for kernel, violations in stated_operation({**constants, **config}, "a configuration").expand(config, arch):
        if not violations:
            yield kernel
        if refused is not None:
            refused.add(violations)


def archs_with(expand: Callable[[Arch], object]) -> tuple[str, ...]:
    """Return the shipped architectures that ``expand`` finds kernels for, sorted; EmptyExpansionError if none."""
    supported, refused = [], []
    for name in archs.names():
        try:
            expand(archs.load(name))
            supported.append(name)
        except EmptyExpansionError as error:
            refused.append(str(error))
    if not supported:
        raise EmptyExpansionError("\n".join(refused))
    return tuple(supported)


def expand_fields(config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    """Yield the combinations of a configuration whose sections have exactly the fields of the operation's spec.

    SpecError for anything else, for a missing field, and for more than :data:`MAX_COMBINATIONS`.
    """
    check_keys(config)
    fields = operation(config.get("op") or config["problem"]["op"]).spec_type.model_fields
    problem, axes = read_sections(config, tuple(fields))
    if (count := math.prod(map(len, axes.values()))) > MAX_COMBINATIONS:
        raise SpecError(f"the configuration has {count} combinations; allowed: {MAX_COMBINATIONS}; list fewer values")
    for values in itertools.product(*axes.values()):
        kernel = Kernel(arch=arch.name, spec=parse_spec({**problem, **dict(zip(axes, values, strict=True))}, arch))
        yield kernel, validate(kernel, arch)


@dataclass
class Refused:
    """Number of combinations, how many each rule refused, and one violation per rule; as text, the reasons."""

    combinations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Violation] = field(default_factory=dict)

    def add(self, violations: Sequence[Violation]) -> None:
        """Count a combination, with the violations that refuse it, if any."""
        self.combinations += 1
        self.counts.update({violation.rule for violation in violations})
        for violation in violations:
            self.examples.setdefault(violation.rule, violation)

    def __str__(self) -> str:
        return "".join(f"\n  {count} x {self.examples[rule]}" for rule, count in self.counts.most_common(5))


def check_keys(config: Mapping[str, Any], further: Sequence[str] = ()) -> None:
    """Raise SpecError for a key of a configuration that is neither common to all operations nor among ``further``."""
    allowed = ("op", "limits", *SECTIONS, *further)
    for key in config:
        if key not in allowed:
            hint = closest(key, allowed)
            raise SpecError(f"configuration has an unknown section {key!r}{hint}; allowed: {', '.join(allowed)}")


def read_sections(
    config: Mapping[str, Any], fields: Collection[str], lists: Collection[str] = (), renamed: Mapping[str, str] = {}
) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
    """Return the constants and the axes (values by field) of a configuration.

    ``fields`` are the keys that sections may have, ``renamed`` further spellings of some, and ``lists`` those whose
    single value is itself a list. SpecError for anything else, and for a field that is given twice.
    """
    problem = {"op": config["op"]} if "op" in config else {}
    problem |= _section(config, "problem", fields, renamed)
    if "op" in config and problem["op"] != config["op"]:
        raise SpecError(f"op is {config['op']!r} and in problem {problem['op']!r}; keep one of them")
    axes: dict[str, Sequence[Any]] = {}
    for section in SECTIONS[1:]:
        for key, value in _section(config, section, fields, renamed).items():
            if key in axes or key in problem:
                raise SpecError(f"field {key!r} is given twice")
            if isinstance(value, list) and (key not in lists or all(isinstance(v, list) for v in value)):
                value = {"values": value}  # CK Tile's short form
            axes[key] = list(_values(f"{section}.{key}", value))
    return problem, axes


def _section(
    config: Mapping[str, Any], name: str, fields: Collection[str], renamed: Mapping[str, str]
) -> dict[str, Any]:
    section = config.get(name, {})
    if not isinstance(section, Mapping):
        raise SpecError(f"section {name!r} must be an object, not {section!r}")
    by_field: dict[str, Any] = {}
    for key, value in section.items():
        plain = renamed.get(key, key)
        if plain not in fields:
            raise SpecError(f"{name} has an unknown field {key!r}{closest(key, fields)}; allowed: {', '.join(fields)}")
        by_field[plain] = value
    return by_field


def _values(where: str, value: object) -> Iterator[Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{where} = {value!r}: write {_SECTION_HELP}")
    keys = set(value)
    if keys == {"values"} and isinstance(value["values"], list) and value["values"]:
        yield from check_values(where, value["values"])
    elif {"min", "max"} <= keys <= _RANGE:
        low, high, step, exclude = value["min"], value["max"], value.get("step", 1), value.get("exclude", [])
        if not all(type(item) is int for item in (low, high, step)) or step < 1 or low > high:
            raise SpecError(
                f"{where} = {dict(value)!r}: min, max and step are whole numbers with min <= max, step >= 1"
            )
        if not isinstance(exclude, list):
            raise SpecError(f"{where}.exclude = {exclude!r}: write a list")
        if (high - low) // step >= MAX_VALUES:
            raise SpecError(f"{where} has more than {MAX_VALUES} values; widen step")
        check_values(f"{where}.exclude", exclude)
        kept = [item for item in range(low, high + 1, step) if item not in exclude]
        if not kept:
            raise SpecError(f"{where} = {dict(value)!r} excludes every value")
        yield from kept
    else:
        raise SpecError(f"{where} = {dict(value)!r}: write {_SECTION_HELP}")


def check_values(where: str, values: Sequence[Any]) -> Sequence[Any]:
    """Return ``values`` themselves; SpecError for more than :data:`MAX_VALUES` and for one that is listed twice."""
    if len(values) > MAX_VALUES:
        raise SpecError(f"{where} lists {len(values)} values; at most {MAX_VALUES}: leave some out")
    for index, item in enumerate(values):
        if item in values[:index]:
            raise SpecError(f"{where} lists {item!r} twice")
    return values

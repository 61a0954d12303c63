"""From a configuration (lists and ranges of values) to every legal kernel that it describes."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.spec import Kernel
from kernelwright.codegen.specs import EXTENTS, FIELDS, build_spec, complete
from kernelwright.codegen.validate import validate
from kernelwright.codegen.variants import KEYS, configs_of
from kernelwright.codegen.violations import SpecError, Violation

MAX_COMBINATIONS = 1_000_000
_SECTIONS = ("problem", "tile_config", "trait_config")
_TOP = ("op", "limits", *_SECTIONS, *KEYS)
_SECTION_HELP = '[…], {"values": […]} or {"min", "max", "step", "exclude"}'


class EmptyExpansionError(SpecError):
    """A configuration or rule set of which no kernel is legal."""


@dataclass(frozen=True)
class Expansion:
    """``kernels`` in a fixed order, and how many combinations each rule refused (a combination may break several)."""

    kernels: tuple[Kernel, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


def expand_config(config: object, arch: Arch) -> Expansion:
    """Every legal kernel of a configuration, in the order of its fields and values.

    A configuration is an object of three sections. ``problem`` holds constants (dtype, layout, …); ``tile_config`` and
    ``trait_config`` give each field ``{"values": […]}``, or the list alone, or ``{"min", "max", "step", "exclude"}``
    (defaults: ``step`` 1, ``exclude`` empty). Fields are those of :mod:`kernelwright.codegen.specs`; ``warp_m``
    and its like are accepted for ``wave_m``. The kernels are the cartesian product, less what the rules of ``arch``
    refuse. Beside the sections may stand ``limits``, for whoever selects (see :mod:`kernelwright.codegen.select`), and
    ``variants``, for each of which the kernels of that variant are taken (see :mod:`kernelwright.codegen.variants`).

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
    """The legal kernels of a configuration one by one, see :func:`expand_config`; SpecError if it is malformed."""
    for variant, one in configs_of(_checked(config), arch):
        for kernel, violations in _points(one, arch):
            if variant is not None and kernel.spec.variant != variant:
                why = "the configuration asks for another variant"
                violations = (Violation("gemm.variant", "variant", kernel.spec.variant, why, variant, variant),)
            if not violations:
                yield kernel
            if refused is not None:
                refused.add(violations)


def _points(config: dict[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    problem, axes = _read(config)
    total = math.prod(len(values) for values in axes.values())
    if total > MAX_COMBINATIONS:
        raise SpecError(f"the configuration has {total} combinations; at most {MAX_COMBINATIONS}: narrow a range")
    for point in itertools.product(*axes.values()):
        fields = complete({**problem, **dict(zip(axes, point, strict=True))}, arch)
        kernel = Kernel(arch=arch.name, spec=build_spec(fields))
        yield kernel, validate(kernel, arch)


@dataclass
class Refused:
    """How many combinations there were, how many each rule refused, and one violation of each rule; text of reasons."""

    combinations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Violation] = field(default_factory=dict)

    def add(self, violations: Sequence[Violation]) -> None:
        """Count a combination, with the violations that refuse it or none."""
        self.combinations += 1
        self.counts.update({violation.rule for violation in violations})
        for violation in violations:
            self.examples.setdefault(violation.rule, violation)

    def __str__(self) -> str:
        return "".join(f"\n  {count} x {self.examples[rule]}" for rule, count in self.counts.most_common(5))


def read_json(path: str | Path) -> Any:
    """The contents of a JSON file; SpecError if it cannot be read or is no JSON."""
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SpecError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{str(path)!r} is not JSON: {error}") from None


def _checked(config: object) -> Mapping[str, Any]:
    if not isinstance(config, Mapping):
        raise SpecError(f"a configuration is an object with {', '.join(_SECTIONS)}, not {config!r}")
    for key in config:
        if key not in _TOP:
            raise SpecError(f"configuration has an unknown section {key!r}; allowed: {', '.join(_TOP)}")
    return config


def _read(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
    problem = {"op": config["op"]} if "op" in config else {}
    problem.update(_section(config, "problem"))
    axes: dict[str, Sequence[Any]] = {}
    for section in _SECTIONS[1:]:
        for key, value in _section(config, section).items():
            if key in axes or key in problem:
                raise SpecError(f"field {key!r} is given twice")
            if isinstance(value, list) and (key not in (*EXTENTS, "pad") or all(isinstance(v, list) for v in value)):
                value = {"values": value}  # CK Tile's short form
            axes[key] = list(_values(f"{section}.{key}", value))
    return problem, axes


def _section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = config.get(name, {})
    if not isinstance(section, Mapping):
        raise SpecError(f"section {name!r} must be an object, not {section!r}")
    renamed: dict[str, Any] = {}
    for key, value in section.items():
        plain = {"warp_m": "wave_m", "warp_n": "wave_n", "warp_k": "wave_k"}.get(key, key)
        if plain not in FIELDS:
            raise SpecError(f"{name} has an unknown field {key!r}; allowed: {', '.join(FIELDS)}")
        renamed[plain] = value
    return renamed


def _values(where: str, value: object) -> Iterator[Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{where} = {value!r}: write {_SECTION_HELP}")
    keys = set(value)
    if keys == {"values"} and isinstance(value["values"], list) and value["values"]:
        yield from _unique(where, value["values"])
    elif {"min", "max"} <= keys <= {"min", "max", "step", "exclude"}:
        low, high, step, exclude = value["min"], value["max"], value.get("step", 1), value.get("exclude", [])
        if not all(type(item) is int for item in (low, high, step)) or step < 1 or low > high:
            raise SpecError(
                f"{where} = {dict(value)!r}: min, max and step are whole numbers with min <= max, step >= 1"
            )
        if not isinstance(exclude, list):
            raise SpecError(f"{where}.exclude = {exclude!r}: write a list")
        if (high - low) // step >= MAX_COMBINATIONS:
            raise SpecError(f"{where} has more than {MAX_COMBINATIONS} values")
        kept = [item for item in range(low, high + 1, step) if item not in exclude]
        if not kept:
            raise SpecError(f"{where} = {dict(value)!r} excludes every value")
        yield from kept
    else:
        raise SpecError(f"{where} = {dict(value)!r}: write {_SECTION_HELP}")


def _unique(where: str, values: Sequence[Any]) -> Sequence[Any]:
    for index, item in enumerate(values):
        if item in values[:index]:
            raise SpecError(f"{where} lists {item!r} twice")
    return values

"""Selections of kernels: architectures by name; kernels by rule set, configuration or list of specs, and filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernelwright import arch as archs
from kernelwright.arch import Arch, ArchError
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.resources.limits import Limits, parse_limits, strictest
from kernelwright.codegen.selecting.expand import expand_config
from kernelwright.codegen.selecting.filters import apply_filter
from kernelwright.codegen.selecting.recorded.choice import choose_kernels
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel, parse_kernels
from kernelwright.codegen.violations import SpecError
from kernelwright.files.arch_files import own_names


@dataclass(frozen=True)
class Selection:
    """Kernels of one architecture, sorted by name, what rules refused, and limits by kernel identity.

    ``purposes`` lists, by identity, the recorded problems that a kernel was chosen for.
    """

    arch: Arch
    kernels: tuple[Kernel, ...]
    dropped: Mapping[str, int]
    limits: Mapping[str, Limits] = field(default_factory=dict)
    purposes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def load_archs(files: Iterable[str] = ()) -> dict[str, Arch]:
    """Every architecture by name, plus those of ``files``; ArchError for a name that is taken or a wrong file."""
    known = {name: archs.load(name) for name in archs.names()}
    for name in own_names():
        _check_sections(known[name])
    for path in files:
        arch = archs.load_file(path)
        _check_sections(arch)
        archs.register(arch)
        known[arch.name] = arch
    return known


def _check_sections(arch: Arch) -> None:
    for name in arch.operations:
        operation(name).check_arch(arch)


def select(
    source: str,
    value: Any,
    names: Sequence[str],
    known: Mapping[str, Arch],
    expression: str | None = None,
    limits: object = None,
) -> list[Selection]:
    """Return the kernels that a ``set``, ``config``, ``specs`` or ``problems`` (``source``) describes, for each arch.

    ``limits`` apply to all of them, besides those that a configuration states. ``config`` and ``specs`` are data, or
    the path of a JSON file that holds them (one spec or a list of them). Raises SpecError or ArchError for anything
    unknown, illegal, empty or without a match.
    """
    if source in ("config", "specs") and isinstance(value, str):
        value = read_json(value)
    if source == "specs" and isinstance(value, Mapping):
        value = [value]
    if source == "specs" and not isinstance(value, list):
        raise SpecError(f"specs must be a spec or a list of specs, not {value!r}")
    picked = []
    chosen = {arch.name: arch for arch in (find_arch(name, known) for name in names)}
    for _, arch in sorted(chosen.items()):
        if source == "set":
            expansion = expand_set(value, arch)
            picked.append(_selection(arch, expansion.kernels, expansion.dropped))
        elif source == "config":
            expansion = expand_config(value, arch)
            picked.append(_selection(arch, expansion.kernels, expansion.dropped))
        elif source == "problems":
            chosen_kernels = choose_kernels(value, arch)
            picked.append(replace(_selection(arch, chosen_kernels.kernels), purposes=chosen_kernels.purposes))
        else:
            picked.append(_selection(arch, parse_kernels(value, arch)))
    stated = [limits, value.get("limits") if source == "config" else None]
    return filtered([limited(item, [one for one in stated if one is not None]) for item in picked], expression)


def select_listed(raws: Iterable[object], known: Mapping[str, Arch], expression: str | None = None) -> list[Selection]:
    """Return the kernels of ``[{"arch": …, "spec": …, "origin": …, "limits": …}, …]``; the last two are optional.

    The same kernel listed twice is one kernel, with the stricter limits. SpecError names every wrong entry by its
    ``origin`` (where it was written) or its position.
    """
    by_arch: dict[str, list[Kernel]] = {}
    limits: dict[str, list[Limits]] = {}
    problems = []
    for index, raw in enumerate(raws):
        origin = f"kernels[{index}]"
        if not isinstance(raw, Mapping) or not {"arch", "spec"} <= set(raw) <= {"arch", "spec", "origin", "limits"}:
            raise SpecError(f"{origin} must have the keys 'arch', 'spec' and, if you like, 'origin' and 'limits'")
        try:
            arch = find_arch(raw["arch"], known)
            kernel = parse_kernel(raw["spec"], arch)
            if "limits" in raw:
                limits.setdefault(kernel.identity, []).append(parse_limits(raw["limits"], arch))
            by_arch.setdefault(kernel.arch, []).append(kernel)
        except (SpecError, ArchError) as error:
            problems.append((raw.get("origin") or origin, error))
    if problems:
        more = f"\n… and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise SpecError("\n".join(f"{where}: {error}" for where, error in problems[:10]) + more)
    if not by_arch:
        raise SpecError("the list of kernels is empty")
    merged = {identity: strictest(stated) for identity, stated in limits.items()}
    selections = [_selection(known[name], kernels, limits=merged) for name, kernels in sorted(by_arch.items())]
    return filtered(selections, expression)


def find_arch(name: object, known: Mapping[str, Arch]) -> Arch:
    """Return ``known[name]``; ArchError with the known names and the closest match if there is none."""
    if isinstance(name, str) and name in known:
        return known[name]
    raise archs.unknown(str(name), tuple(known))


def filtered(selections: list[Selection], expression: str | None) -> list[Selection]:
    """Return the selections narrowed to matching kernels, without architectures that are left with none.

    FilterError for a wrong expression, and if nothing matches on any architecture.
    """
    if expression is None:
        return selections
    matching = set(apply_filter(expression, [kernel for item in selections for kernel in item.kernels]))
    kept = [
        replace(
            _selection(one.arch, matching.intersection(one.kernels), one.dropped, one.limits), purposes=one.purposes
        )
        for one in selections
    ]
    return [item for item in kept if item.kernels]


def limited(item: Selection, raws: Sequence[object]) -> Selection:
    """Return the selection with the strictest of ``raws`` as limits of all its kernels; SpecError for wrong ones."""
    if not raws:
        return item
    limits = strictest(parse_limits(raw, item.arch) for raw in raws)
    return replace(item, limits={kernel.identity: limits for kernel in item.kernels} if limits else {})


def _selection(
    arch: Arch,
    kernels: Iterable[Kernel],
    dropped: Mapping[str, int] | None = None,
    limits: Mapping[str, Limits] | None = None,
) -> Selection:
    unique = {kernel.identity: kernel for kernel in kernels}
    ordered = tuple(sorted(unique.values(), key=lambda kernel: kernel.name))
    stated = {identity: one for identity, one in (limits or {}).items() if identity in unique and one}
    return Selection(arch, ordered, dropped or {}, stated)

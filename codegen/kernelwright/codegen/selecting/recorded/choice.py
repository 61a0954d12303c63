"""The kernels for a trace on an architecture, and which problems each of them is there for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config, read_json
from kernelwright.codegen.selecting.recorded.cover import Budget, choose, fastest
from kernelwright.codegen.selecting.recorded.trace import Wanted, model_of, read_measured, read_wanted
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

KEYS = ("trace", "sweep", "set", "config", "budget_kernels", "budget_seconds")
"""What a choice may say."""


@dataclass(frozen=True)
class Chosen:
    """Kernels in the order in which they were chosen, and the problems that each serves best of all of them."""

    kernels: tuple[Kernel, ...]
    purposes: Mapping[str, tuple[str, ...]]


def choose_kernels(value: object, arch: Arch) -> Chosen:
    """The kernels that serve the problems of a trace with the least time in all, within a budget.

    ``value`` has ``trace`` (data, or the path of a file), and may have ``set`` or ``config`` (the candidates; every
    preselected kernel of the problems' types unless given), ``sweep`` (a table of the tile engine, whose times count
    instead of predicted ones), ``budget_kernels`` and ``budget_seconds`` (of compiling, estimated).

    SpecError for wrong input, and if candidates or budget leave a problem without a kernel.
    """
    if not isinstance(value, Mapping) or "trace" not in value or set(value) - set(KEYS):
        raise SpecError(f"problems = {value!r}: write an object with trace and, if you like, {', '.join(KEYS[1:])}")
    trace = value["trace"]
    wanted = read_wanted(read_json(trace) if isinstance(trace, str | Path) else trace)
    budget = Budget(_positive(value, "budget_kernels", int), _positive(value, "budget_seconds", (int, float)))
    candidates = {kernel.identity: kernel for kernel in _candidates(value, wanted, arch)}
    sources = _times(candidates, wanted, arch, value.get("sweep"))
    times = {identity: {index: us for index, (us, _) in of.items()} for identity, of in sources.items()}
    unserved = [one.text for index, one in enumerate(wanted) if not any(index in of for of in times.values())]
    if unserved:
        what = f"no kernel of {len(candidates)} candidates for {arch.name} serves"
        raise SpecError(_left_out(unserved, len(wanted), what))
    seconds = {identity: operation(one.spec.op).seconds(one, arch) for identity, one in candidates.items()}
    chosen = choose(times, [one.count for one in wanted], seconds, budget)
    without = [one.text for index, one in enumerate(wanted) if not any(index in times[identity] for identity in chosen)]
    if without:
        every = len(choose(times, [one.count for one in wanted], seconds, Budget()))
        what = f"the budget (without one: {every} kernels) leaves no kernel for {arch.name} that serves"
        raise SpecError(_left_out(without, len(wanted), what))
    return Chosen(tuple(candidates[identity] for identity in chosen), _purposes(chosen, sources, wanted))


def _candidates(value: Mapping[str, Any], wanted: Sequence[Wanted], arch: Arch) -> Iterable[Kernel]:
    if "set" in value and "config" in value:
        raise SpecError("problems have candidates of a set or of a configuration, not of both; leave one out")
    if "config" in value:
        config = value["config"]
        return expand_config(read_json(config) if isinstance(config, str) else config, arch).kernels
    if "set" in value:
        return expand_set(value["set"], arch).kernels
    names = dict.fromkeys(name for one in wanted for name in model_of(one).candidate_sets(one.posed))
    found: list[Kernel] = []
    refused = []
    for name in names:
        try:
            found += expand_set(name, arch).kernels
        except EmptyExpansionError as error:
            refused.append(str(error))
    if not found:
        raise EmptyExpansionError("\n".join(refused))
    return found


def _times(
    candidates: Mapping[str, Kernel], wanted: Sequence[Wanted], arch: Arch, sweep: object
) -> dict[str, dict[int, tuple[float, str]]]:
    """Microseconds and where they are from, by kernel and problem; measured problems have measured times only."""
    measured = {} if sweep is None else read_measured(str(sweep))
    keys = [model_of(one).key(one.posed) for one in wanted]
    known = {key for key, _ in measured}
    found: dict[str, dict[int, tuple[float, str]]] = {}
    for identity, kernel in candidates.items():
        of = found.setdefault(identity, {})
        for index, one in enumerate(wanted):
            if keys[index] in known:
                if (keys[index], identity) in measured:
                    of[index] = measured[keys[index], identity], "measured"
            elif one.op == kernel.spec.op:
                us = model_of(one).microseconds(kernel, one.posed, arch)
                if us is not None:
                    of[index] = us, "predicted"
    return {identity: of for identity, of in found.items() if of}


def _purposes(
    chosen: Sequence[str], sources: Mapping[str, Mapping[int, tuple[float, str]]], wanted: Sequence[Wanted]
) -> dict[str, tuple[str, ...]]:
    """A sentence for each problem, by the identity of the chosen kernel that serves it fastest."""
    found: dict[str, list[str]] = {identity: [] for identity in chosen}
    times = {identity: {index: us for index, (us, _) in sources[identity].items()} for identity in chosen}
    for index, best in fastest(times, chosen, len(wanted)).items():
        us, source = sources[best][index]
        found[best].append(f"{wanted[index].text}: {wanted[index].count} times, {us:.1f} us {source}")
    return {identity: tuple(lines) for identity, lines in found.items()}


def _left_out(texts: Sequence[str], total: int, what: str) -> str:
    more = f"\n  … and {len(texts) - 5} more" if len(texts) > 5 else ""
    return f"{what} {len(texts)} of {total} problems:\n  " + "\n  ".join(texts[:5]) + more


def _positive(value: Mapping[str, Any], key: str, kind: Any) -> Any:
    given = value.get(key)
    if given is not None and (isinstance(given, bool) or not isinstance(given, kind) or given <= 0):
        raise SpecError(f"{key} is {given!r}; allowed: a number above 0")
    return given

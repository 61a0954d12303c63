"""Chooses the kernels for a trace on an architecture, and states which problems each of them serves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.selecting.recorded.cover import Budget, Option, choose, fastest
from kernelwright.codegen.selecting.recorded.predicted import Time, predicted
from kernelwright.codegen.selecting.recorded.trace import Measured, Wanted, read_measured, read_wanted
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError

KEYS = ("trace", "sweep", "set", "config", "budget_kernels", "budget_seconds")
"""Keys of a choice."""


@dataclass(frozen=True)
class Chosen:
    """Kernels in the order in which they were chosen, and the problems that each serves, alone or with others."""

    kernels: tuple[Kernel, ...]
    purposes: Mapping[str, tuple[str, ...]]


def choose_kernels(value: object, arch: Arch) -> Chosen:
    """Return the kernels that serve the problems of a trace in the least total time, within a budget.

    ``value`` has ``trace`` (data, or the path of a file), and may have ``set`` or ``config`` (the candidates; by
    default every preselected kernel of the problems' types), ``sweep`` (a table of the tile engine, whose times replace
    predicted ones), ``budget_kernels`` and ``budget_seconds`` (estimated compile time).

    SpecError for wrong input, and if candidates or budget leave a problem without a kernel.
    """
    if not isinstance(value, Mapping) or "trace" not in value or set(value) - set(KEYS):
        raise SpecError(f"problems = {value!r}: write an object with trace and, if you like, {', '.join(KEYS[1:])}")
    trace = value["trace"]
    wanted = read_wanted(read_json(trace) if isinstance(trace, str | Path) else trace)
    budget = Budget(_positive(value, "budget_kernels", int), _positive(value, "budget_seconds", (int, float)))
    candidates = {kernel.identity: kernel for kernel in _candidates(value, wanted, arch)}
    measured = {} if value.get("sweep") is None else read_measured(str(value["sweep"]))
    sources = predicted(candidates.values(), wanted, arch, {key for key, _ in measured})
    for option, of in _measured(candidates, wanted, measured).items():
        sources.setdefault(option, {}).update(of)
    place = {identity: index for index, identity in enumerate(candidates)}  # of equal kernels, the set's comes first
    times = {
        option: {index: one.microseconds for index, one in sources[option].items()}
        for option in sorted(sources, key=lambda option: [place[identity] for identity in option])
    }
    unserved = [one.text for index, one in enumerate(wanted) if not any(index in of for of in times.values())]
    if unserved:
        what = f"no kernel of {len(candidates)} candidates for {arch.name} serves"
        raise SpecError(_left_out(unserved, len(wanted), what))
    counts = [one.count for one in wanted]
    seconds = {identity: operation(one.spec.op).seconds(one, arch) for identity, one in candidates.items()}
    chosen = choose(times, counts, seconds, budget)
    served = fastest(times, chosen, len(wanted))
    without = [one.text for index, one in enumerate(wanted) if index not in served]
    if without:
        every = len(choose(times, counts, seconds, Budget()))
        what = f"the budget (without one: {every} kernels) leaves no kernel for {arch.name} that serves"
        raise SpecError(_left_out(without, len(wanted), what))
    purposes = _purposes({index: (option, sources[option][index]) for index, option in served.items()}, wanted)
    return Chosen(tuple(candidates[identity] for identity in chosen), purposes)


def _candidates(value: Mapping[str, Any], wanted: Sequence[Wanted], arch: Arch) -> Iterable[Kernel]:
    if "set" in value and "config" in value:
        raise SpecError("problems have candidates of a set or of a configuration, not of both; leave one out")
    if "config" in value:
        config = value["config"]
        return expand_config(read_json(config) if isinstance(config, str) else config, arch).kernels
    if "set" in value:
        return expand_set(value["set"], arch).kernels
    names = dict.fromkeys(f"{one.op}:{name}" for one in wanted for name in one.model.candidate_sets(one.asked))
    kernels: list[Kernel] = []
    refused = []
    for name in names:
        try:
            kernels += expand_set(name, arch).kernels
        except EmptyExpansionError as error:
            refused.append(str(error))
    if not kernels:
        raise EmptyExpansionError("\n".join(refused))
    return [*kernels, *_fitted(kernels, wanted, arch)]


def _fitted(kernels: Sequence[Kernel], wanted: Sequence[Wanted], arch: Arch) -> Iterator[Kernel]:
    """Yield legal kernels like those of the sets, with the epilogues that problems ask for."""
    for kernel in kernels:
        made = dict.fromkeys(one.model.fitted(kernel, one.asked) for one in wanted if one.op == kernel.spec.op)
        for spec in made:
            like = None if spec is None or spec == kernel.spec else Kernel(arch=arch.name, spec=spec)
            if like is not None and not validate(like, arch):
                yield like


def _measured(
    candidates: Mapping[str, Kernel], wanted: Sequence[Wanted], measured: Mapping[tuple[Hashable, str], Measured]
) -> dict[Option, dict[int, Time]]:
    """Return times of a table, for plans whose kernels are all candidates."""
    times: dict[Option, dict[int, Time]] = {}
    for index, one in enumerate(wanted):
        key = one.key
        for identity in candidates:
            time = measured.get((key, identity))
            if time is not None and set(time.stages) <= set(candidates):
                times.setdefault((identity, *time.stages), {})[index] = Time(time.microseconds, "measured")
    return times


def _purposes(served: Mapping[int, tuple[Option, Time]], wanted: Sequence[Wanted]) -> dict[str, tuple[str, ...]]:
    """Return a sentence for each problem, by the identities of the chosen kernels that serve it fastest."""
    purposes: dict[str, list[str]] = {}
    for index, ((main, *others), time) in served.items():
        line = f"{wanted[index].text}: {wanted[index].count} times, {time.microseconds:.1f} us {time.source}"
        purposes.setdefault(main, []).append(line)
        for identity in others:
            purposes.setdefault(identity, []).append(f"{line}, a further stage")
    return {identity: tuple(lines) for identity, lines in purposes.items()}


def _left_out(texts: Sequence[str], total: int, what: str) -> str:
    more = f"\n  … and {len(texts) - 5} more" if len(texts) > 5 else ""
    return f"{what} {len(texts)} of {total} problems:\n  " + "\n  ".join(texts[:5]) + more


def _positive(value: Mapping[str, Any], key: str, kind: Any) -> Any:
    given = value.get(key)
    if given is not None and (isinstance(given, bool) or not isinstance(given, kind) or given <= 0):
        raise SpecError(f"{key} is {given!r}; allowed: a number above 0")
    return given

"""From table rows to training data: features, rates, and the family of each problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ConfigDict

from kernelwright.arch import Arch
from kernelwright.codegen.heuristics.schema import Schema
from kernelwright.codegen.inputs import Input, checked, read_json
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.files.strict_json import parse_json
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.registry import learnable, measurable
from kernelwright.tile_engine.results.analysis import Cells, Timed, timed

Specs = Mapping[str, Mapping[str, Any]]
"""Specs of kernels by identity."""


class _Kernel(Input):
    model_config = ConfigDict(extra="ignore")
    identity: str
    spec: dict[str, Any]


class _Library(Input):
    """The part of a manifest, of any version, that training uses."""

    model_config = ConfigDict(extra="ignore")
    arch: str
    kernels: list[_Kernel]


@dataclass(frozen=True)
class Examples:
    """One kernel on one problem per row, with its choices if the schema distinguishes choices.

    :ivar features: feature values in the order of the schema.
    :ivar tflops: measured rate; if choices are not distinguished, that of the kernel's best choice.
    :ivar problem: index of the problem; ``family`` is the index of its model family in ``families``.
    :ivar selected: whether the dispatcher chose the kernel when it was measured.
    :ivar kernel_hull: minimum and maximum of each of the schema's kernel features.
    :ivar slow: whether the kernel was too slow to be timed; ``tflops`` then exceeds its rate.
    """

    features: np.ndarray[Any, Any]
    tflops: np.ndarray[Any, Any]
    problem: np.ndarray[Any, Any]
    family: np.ndarray[Any, Any]
    selected: np.ndarray[Any, Any]
    slow: np.ndarray[Any, Any]
    kernels: tuple[str, ...]
    families: tuple[str, ...]
    kernel_hull: Mapping[str, tuple[float, float]]

    def of(self, chosen: np.ndarray[Any, Any]) -> Examples:
        """A subset of the rows."""
        kernels = tuple(name for name, taken in zip(self.kernels, chosen, strict=True) if taken)
        columns = (self.features, self.tflops, self.problem, self.family, self.selected, self.slow)
        features, tflops, problem, family, selected, slow = (column[chosen] for column in columns)
        return Examples(features, tflops, problem, family, selected, slow, kernels, self.families, self.kernel_hull)


def read_specs(folders: Iterable[Path], arch: Arch) -> dict[str, Mapping[str, Any]]:
    """Specs of the kernels for ``arch`` by identity, from libraries or from JSON files that list specs.

    ValueError for a folder without a manifest.
    """
    by_identity: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        if folder.is_file() and isinstance(listed := read_json(folder), list):
            kernels = [parse_kernel(spec, arch) for spec in listed]
            by_identity |= {kernel.identity: kernel.spec.model_dump(mode="json") for kernel in kernels}
            continue
        manifests = [folder] if folder.is_file() else sorted(folder.rglob("manifest.json"))
        if not manifests:
            raise ValueError(f"{folder} holds no manifest.json; name the folder of a kernel library")
        for manifest in manifests:
            content = checked(_Library, read_json(manifest), repr(str(manifest)))
            if content.arch == arch.name:
                by_identity |= {kernel.identity: kernel.spec for kernel in content.kernels}
    return by_identity


def examples_of(
    rows: Sequence[Cells],
    specs: Specs,
    schema: Schema,
    dtypes: Sequence[str],
    arch: Arch,
    units: int,
    too_slow: bool = False,
) -> Examples:
    """The correct, timed rows of some dtypes. Raises ValueError if there are none, or if a kernel's spec is unknown.

    A kernel has a row for each of its choices if the schema's features distinguish them, else one for the best.

    :param too_slow: whether kernels that were too slow to be timed have rows too, as half as fast as the fastest one.
    """
    operation, learned = measurable(schema.op), learnable(schema.op)
    own = [one for one in rows if one["dtype"] in dtypes and one["arch"] == arch.name]
    best = _best(own, operation.columns, schema.reads_value)
    if not best:
        raise ValueError(f"the tables hold no time of {' or '.join(dtypes)} on {arch.name}")
    if too_slow:
        best |= _slow(own, operation.columns, schema.reads_value, best)
    if unknown := sorted({identity for _, identity, _ in best} - set(specs)):
        raise ValueError(f"no library holds kernel {unknown[0]} ({len(unknown)} such); add its folder with --library")
    records = {key: record_of(operation, dict(zip(operation.columns, key, strict=True))) for key, _, _ in best}
    read = {key: learned.inputs(records[key[0]], specs[key[1]], key[2]) for key in best}
    inputs = {key: {**features, "units": float(units)} for key, features in read.items() if features is not None}
    if not inputs:
        raise ValueError(f"no problem of the tables is one whose selection is learned; {schema.op} has others")
    problems = {key: index for index, key in enumerate(dict.fromkeys(problem for problem, _, _ in inputs))}
    family_of = {key: learned.family(records[key]) for key in problems}
    families = tuple(dict.fromkeys(family_of.values()))
    return Examples(
        np.array([schema.values(one) for one in inputs.values()]),
        np.array([best[key].tflops for key in inputs]),
        np.array([problems[problem] for problem, _, _ in inputs]),
        np.array([families.index(family_of[problem]) for problem, _, _ in inputs]),
        np.array([best[key].selected for key in inputs]),
        np.array([best[key].slow for key in inputs]),
        tuple(best[key].kernel for key in inputs),
        families,
        _range(schema, inputs.values()),
    )


def _range(schema: Schema, inputs: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    columns = zip(*(schema.kernel_values(one) for one in inputs), strict=True)
    return {name: (min(column), max(column)) for name, column in zip(schema.kernel_features, columns, strict=True)}


@dataclass(frozen=True)
class _Measured:
    kernel: str
    tflops: float
    selected: bool
    slow: bool = False


_Key = tuple[tuple[str, ...], str, int]
"""A problem's cells, the identity of a kernel, and its choices."""


def _key(cells: Cells, columns: Sequence[str], valued: bool) -> _Key:
    problem = tuple(cells[name] for name in columns)
    return problem, cells["identity"], value_of(cells.get("choices", "")) if valued else 0


def _best(rows: Sequence[Cells], columns: Sequence[str], valued: bool) -> dict[_Key, _Measured]:
    """The best time of each key."""
    fastest: dict[_Key, Timed] = {}
    selected: set[_Key] = set()
    for one in timed(rows):
        key = _key(one.cells, columns, valued)
        if one.selected:
            selected.add(key)
        if key not in fastest or one.milliseconds < fastest[key].milliseconds:
            fastest[key] = one
    return {key: _Measured(one.kernel, float(one.cells["tflops"]), key in selected) for key, one in fastest.items()}


def _slow(
    rows: Sequence[Cells], columns: Sequence[str], valued: bool, best: Mapping[_Key, _Measured]
) -> dict[_Key, _Measured]:
    """Rows of status ``slow``: the first launch took more than twice as long as that of the fastest kernel."""
    fastest: dict[tuple[str, ...], float] = {}
    for (problem, _, _), one in best.items():
        fastest[problem] = max(fastest.get(problem, 0.0), one.tflops)
    slow_kernels = {_key(cells, columns, valued): cells["kernel"] for cells in rows if cells["status"] == "slow"}
    left = {key: name for key, name in slow_kernels.items() if key[0] in fastest and key not in best}
    return {key: _Measured(name, fastest[key[0]] / 2, False, True) for key, name in left.items()}


def record_of(operation: Measurable, cells: Cells) -> Record:
    """The problem of a row."""
    return operation.read({name: _value(cells[name]) for name in operation.columns})


def _value(cell: str) -> Any:
    try:
        return parse_json(cell)
    except ValueError:
        return cell


def value_of(choices: str) -> int:
    """The chosen number in a table's ``choices``, such as ``split_k=4``; 0 if nothing was chosen."""
    return int(choices.partition("=")[2].partition(" ")[0] or 0)

"""From rows of a table to what a model learns from: features, rates, and the family that a problem belongs to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.heuristics.schema import Schema
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.tile_engine.problems.gemm import few_rows_problems, layer_problems, tall_problems
from kernelwright.tile_engine.problems.models import PARTS
from kernelwright.tile_engine.results.analysis import Cells, Timed, timed

Specs = Mapping[str, Mapping[str, Any]]
"""Specs of kernels by identity."""


@dataclass(frozen=True)
class Examples:
    """A kernel on a problem in each row.

    :ivar features: in the order of the schema.
    :ivar tflops: measured rate, of the best of a kernel's choices.
    :ivar problem: index of the problem; ``family`` is the index of its model family in ``families``.
    :ivar selected: whether the dispatcher chose the kernel when it was measured.
    """

    features: np.ndarray[Any, Any]
    tflops: np.ndarray[Any, Any]
    problem: np.ndarray[Any, Any]
    family: np.ndarray[Any, Any]
    selected: np.ndarray[Any, Any]
    kernels: tuple[str, ...]
    families: tuple[str, ...]

    def of(self, chosen: np.ndarray[Any, Any]) -> Examples:
        """Some of the rows."""
        kernels = tuple(name for name, taken in zip(self.kernels, chosen, strict=True) if taken)
        parts = (each[chosen] for each in (self.features, self.tflops, self.problem, self.family, self.selected))
        features, tflops, problem, family, selected = parts
        return Examples(features, tflops, problem, family, selected, kernels, self.families)


def read_specs(folders: Iterable[Path], arch: Arch) -> dict[str, Mapping[str, Any]]:
    """Specs of the kernels for ``arch`` by identity: of libraries, or of JSON files that list specs.

    ValueError for a folder without a manifest.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        if folder.is_file() and isinstance(listed := json.loads(folder.read_text("utf-8")), list):
            kernels = [parse_kernel(dict(spec), arch) for spec in listed]
            found |= {kernel.identity: kernel.spec.model_dump(mode="json") for kernel in kernels}
            continue
        manifests = [folder] if folder.is_file() else sorted(folder.rglob("manifest.json"))
        if not manifests:
            raise ValueError(f"{folder} holds no manifest.json; name the folder of a kernel library")
        for manifest in manifests:
            content = json.loads(manifest.read_text("utf-8"))
            if content["arch"] != arch.name:
                continue
            found |= {kernel["identity"]: kernel["spec"] for kernel in content["kernels"]}
    return found


def examples_of(rows: Sequence[Cells], specs: Specs, schema: Schema, dtype: str, arch: Arch, units: int) -> Examples:
    """The right, timed rows of a dtype. ValueError if there are none, or if a kernel's spec is not known."""
    times = [one for one in timed(rows) if one.cells["dtype"] == dtype and one.cells["arch"] == arch.name]
    if not times:
        raise ValueError(f"the tables hold no time of {dtype} on {arch.name}")
    best: dict[tuple[tuple[str, ...], str], Timed] = {}
    for one in times:
        key = _problem(one.cells), one.identity
        if key not in best or one.milliseconds < best[key].milliseconds:
            best[key] = one
    if unknown := sorted({identity for _, identity in best} - set(specs)):
        raise ValueError(f"no library holds kernel {unknown[0]} ({len(unknown)} such); add its folder with --library")
    selected = {(_problem(one.cells), one.identity) for one in times if one.selected}
    problems = {key: index for index, key in enumerate(dict.fromkeys(problem for problem, _ in best))}
    family_of = _families()
    named = [family_of.get(problem[:3], "x".join(problem[:3])) for problem, _ in best]
    families = tuple(dict.fromkeys(named))
    return Examples(
        np.array([schema.values(inputs(one.cells, specs[one.identity], units)) for one in best.values()]),
        np.array([float(one.cells["tflops"]) for one in best.values()]),
        np.array([problems[problem] for problem, _ in best]),
        np.array([families.index(name) for name in named]),
        np.array([key in selected for key in best]),
        tuple(one.kernel for one in best.values()),
        families,
    )


def inputs(cells: Cells, spec: Mapping[str, Any], units: int) -> dict[str, float]:
    """The numbers that features are made of, as ``kw_gemm_problem`` and ``kw_gemm_traits`` hold them."""
    sizes = [ELEMENT_BYTES[DType(spec[name])] for name in ("dtype_a", "dtype_b", "dtype_c")]
    found: dict[str, float] = {name: float(cells[name]) for name in ("m", "n", "k", "batch")}
    found |= dict(zip(("size_a", "size_b", "size_c"), map(float, sizes), strict=True))
    for extent in ("tile", "wave", "warp_tile"):
        found |= {f"{extent}_{axis}": float(spec[extent][axis]) for axis in "mnk"}
    found |= {f"cluster_{axis}": float(spec.get("cluster", {}).get(axis, 1)) for axis in "mn"}
    found["persistent"] = float(bool(spec.get("persistent")))
    found["split_k"] = float(bool(spec.get("split_k")))
    found["stream_k"] = float(spec.get("stream_k", "none") != "none")
    found["units"] = float(units)
    return found


def _problem(cells: Cells) -> tuple[str, ...]:
    return tuple(cells[name] for name in ("m", "n", "k", "batch", "layout"))


def _families() -> dict[tuple[str, ...], str]:
    """The model family of each of the engine's own problems, by extents."""
    posed = itertools.chain(tall_problems(), *map(few_rows_problems, PARTS), *map(layer_problems, PARTS))
    return {(str(one.m), str(one.n), str(one.k)): one.family for one in posed}

"""GEMM kernels for a release set by predicted times: candidates, problems, and the smallest near-optimal set.

Times are those that the dispatcher ranks by (``formulas/cdna.py``): predicted from counts and from constants fitted to
measurements published by AMD. We measured none of them. The formula reads tile, waves and the partition of K; kernels
that differ in nothing else have equal predictions, and one of them stands for all: ``compv3``, whose single LDS stage
is what the formula counts, with the matrix instruction that was counted to leave the least work to LDS and vector unit.
Stream-K kernels are not candidates: no published time is for one.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from selection.formula import Array, Formula

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.products import Problem
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.complete import complete
from kernelwright.codegen.operations.gemm.spec import GemmSpec, StreamK, gemm_spec
from kernelwright.codegen.operations.gemm.time_model.serves import refusal
from kernelwright.codegen.operations.gemm.time_model.slices import slices
from kernelwright.codegen.operations.gemm.time_model.times import cdna_kernel, tiles_problem
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.tile_engine.problems.gemm import layer_problems
from kernelwright.tile_engine.problems.linear_layers import epilogue_fields
from kernelwright.tile_engine.results.analysis import Timed

COUNTS = Path(__file__).resolve().parents[1] / "results" / "amd_conflicts.json"
SIDES = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)
"""Rows and columns of tiles in the published tables; no time is known for larger ones."""
ROW_BYTES = (64, 128, 256)
"""Bytes of K in a tile, likewise."""
NEAR = 1.25
"""Maximum counted work beside the matrix core of a chosen kernel, relative to the minimum."""
_SHARED_K: tuple[Mapping[str, Any], ...] = ({}, {"split_k": True})
_TRAINING_ROWS = 100  # gradients are computed for batches, not for single tokens


class Form(NamedTuple):
    """The fields that determine LDS bank conflicts of a kernel.

    :ivar depth: K of the tile; the others are the extents of the matrix instruction.
    """

    depth: int
    m: int
    n: int
    k: int


class Group(NamedTuple):
    """Kernels that serve the same products.

    :ivar also: another element type of the same size that gets the same tiles.
    """

    dtype: str
    layout: str
    also: str = ""
    dtype_c: str = ""

    @property
    def text(self) -> str:
        """Description, such as ``bf16 rcr``."""
        return f"{self.dtype} {self.layout}"


GROUPS = (
    Group("bf16", "rcr", "fp16"),
    Group("bf16", "rrr", "fp16"),
    Group("bf16", "crr", "fp16"),
    Group("fp8", "rcr", dtype_c="bf16"),
)
"""Forward products, gradients of inputs and of weights; 8-bit gradients use transposed copies, as rcr."""


def problems(part: str, group: Group) -> list[GemmProblem]:
    """The linear layers of a part's models, each once: forward with their epilogues, or one of their gradients.

    A layer's weight is (n, k): the gradient of its input is a product of (m, n) and (n, k), that of its weight a
    product of (n, m) and (m, k).
    """
    types = {"dtype": group.dtype, "dtype_c": group.dtype_c, "layout": group.layout, "split_k": 0}
    unique: dict[GemmProblem, None] = {}
    for one in layer_problems(part):
        if group.layout == "rcr":
            unique[GemmProblem(one.m, one.n, one.k, **types, **epilogue_fields(one.epilogue))] = None
        elif one.m >= _TRAINING_ROWS:
            m, n, k = (one.m, one.k, one.n) if group.layout == "rrr" else (one.n, one.k, one.m)
            unique[GemmProblem(m, n, k, **types)] = None
    return list(unique)


def candidates(arch: Arch, group: Group) -> list[Kernel]:
    """A legal kernel for each tile, wave layout and partition of K that the published tables cover.

    Forward kernels serve any epilogue, and batches: the formula assigns no cost to either.
    """
    every = {"activation": "any", "batched": True} if group.layout == "rcr" else {}
    fields = {
        "op": "gemm", "dtype": group.dtype, "layout": group.layout, "pipeline": "compv3", "epilogue": "cshuffle",
        "scheduler": "intrawave", **({"dtype_c": group.dtype_c} if group.dtype_c else {}), **every,
    }  # fmt: skip
    kernels: list[Kernel] = []
    counted = beside_the_matrix_core(arch, group)
    depths = [row // ELEMENT_BYTES[DType(group.dtype)] for row in ROW_BYTES]
    waves = [wave for wave in gemm_section(arch).waves if wave[0] * wave[1] <= 4]  # in the tables
    for tile in itertools.product(SIDES, SIDES, depths):
        for wave, shared in itertools.product(waves, _SHARED_K):
            made = [
                Kernel(arch=arch.name, spec=build_spec(complete({**fields, **shared, **one}, arch)))
                for one in _forms(tile, wave, gemm_section(arch).instruction_tiles[group.dtype])
            ]
            legal = [kernel for kernel in made if not validate(kernel, arch)]
            kernels += sorted(legal, key=lambda kernel: _preference(gemm_spec(kernel), counted))[:1]
    return kernels


def _forms(tile: tuple[int, int, int], wave: Sequence[int], instructions: Sequence[Sequence[int]]) -> Iterator[Any]:
    """The fields of a tile with each matrix instruction that divides it evenly among the waves."""
    for one in instructions:
        if all(extent % (count * unit) == 0 for extent, count, unit in zip(tile, wave, one, strict=True)):
            yield {"tile": list(tile), "wave": list(wave), "warp_tile": list(one)}


def beside_the_matrix_core(arch: Arch, group: Group) -> dict[Form, float]:
    """Clocks of the busier of LDS and vector unit per matrix core clock, for 128x128 tiles that were counted.

    Keyed by K of the tile and matrix instruction, which determine bank conflicts. The formula models none of it.
    """
    rates: dict[Form, float] = {}
    for row in json.loads(COUNTS.read_text())["results"]:
        words = row["name"].split("_")
        alike = words[1] in (group.dtype, group.also) and words[2:4] == [group.layout, "compv3"]
        if row["arch"] == arch.name and alike and words[10].startswith("128x128x"):
            _, _, depth, *_ = (int(extent) for extent in words[10].split("x"))
            form = Form(depth, *(int(extent) for extent in words[12].split("x")))
            rate = max(row["lds_clocks"], row["vector_clocks"]) / row["matrix_clocks"]
            rates[form] = min(rates.get(form, math.inf), rate)
    return rates


def _form(spec: GemmSpec) -> Form:
    return Form(spec.tile.k, spec.warp_tile.m, spec.warp_tile.n, spec.warp_tile.k)


def _preference(spec: GemmSpec, counted: Mapping[Form, float]) -> tuple[float, int]:
    """Sort key: least counted work beside the matrix core first, then larger matrix instructions."""
    form = _form(spec)
    return counted.get(form, math.inf), -form.m * form.n * form.k


def eligible(spec: GemmSpec, counted: Mapping[Form, float]) -> bool:
    """Whether a spec's form is counted and not far from the layout's best.

    If A and B are contiguous along K, forms that were not counted are eligible, too, if a row has 128 bytes or more:
    such rows have no conflicts on CDNA3, and on CDNA4 the same conflicts with each instruction (docs/counts.md).
    """
    rate = counted.get(_form(spec))
    if rate is None:
        return str(spec.layout) == "rcr" and spec.tile.k * ELEMENT_BYTES[spec.dtype_a] > ROW_BYTES[0]
    return rate <= NEAR * min(counted.values())


def covering(arch: Arch) -> list[Kernel]:
    """Kernels that a release library has anyway, without stream-K."""
    return [one for one in expand_set("gemm:coverage", arch).kernels if gemm_spec(one).stream_k is StreamK.NONE]


class Predicted:
    """Predicted times of kernels on problems, by the formula compiled to C: millions in seconds."""

    def __init__(self, arch: Arch, kernels: Sequence[Kernel], wanted: Sequence[GemmProblem]) -> None:
        """Predict each kernel on each problem that it serves, with the best number of slices of K."""
        self.kernels = list(kernels)
        formula = Formula("formulas.cdna", ends_early=True)
        self.us = np.full((len(kernels), len(wanted)), np.inf)
        self._known: dict[str, list[int]] = {}
        bases = {problem: np.array(tiles_problem(problem, 1), float) for problem in wanted}
        for row, kernel in enumerate(self.kernels):
            spec = gemm_spec(kernel)
            served = self._served(spec, wanted, arch)
            if served:
                counts = [slices(spec, wanted[index], arch.backend, arch.compute_units) for index in served]
                self.us[row, served] = self._least(
                    formula, arch, spec, [bases[wanted[index]] for index in served], counts
                )

    def _served(self, spec: GemmSpec, wanted: Sequence[GemmProblem], arch: Arch) -> list[int]:
        """Indices of the problems served: kernels that pad serve the same problems whatever their tiles."""
        key = spec.model_dump_json(exclude={"tile", "wave", "warp_tile"} if all(spec.pad) else None)
        if key not in self._known:
            self._known[key] = [index for index, one in enumerate(wanted) if not refusal(spec, one, arch)]
        return self._known[key]

    def _least(
        self, formula: Formula, arch: Arch, spec: GemmSpec, bases: Sequence[Array], counts: Sequence[Sequence[int]]
    ) -> Array:
        """Microseconds of each problem with its best number of slices."""
        lengths = [len(one) for one in counts]
        rest = (*cdna_kernel(spec, arch.time_model == "cdna4"), *device_of(arch, spec.dtype_a, arch.compute_units))
        rows = np.hstack([np.repeat(bases, lengths, axis=0), np.tile(np.array(rest, float), (sum(lengths), 1))])
        rows[:, Problem._fields.index("split")] = list(itertools.chain(*counts))
        starts = np.cumsum([0, *lengths[:-1]])
        return np.minimum.reduceat(formula.predict(rows, {}), starts)

    def timed(self, within: Callable[[Kernel], bool] = lambda kernel: True) -> list[Timed]:
        """Predictions for some of the kernels in the form of measured tables."""
        return [
            Timed(problem, kernel.identity, kernel.name, "", float(self.us[row, problem]) / 1e3, False, {})
            for row, kernel in enumerate(self.kernels)
            if within(kernel)
            for problem in np.flatnonzero(np.isfinite(self.us[row])).tolist()
        ]


def seconds(kernels: Sequence[Kernel], arch: Arch) -> dict[str, float]:
    """Compile time of each kernel, as the generator estimates it."""
    return {kernel.identity: operation("gemm").seconds(kernel, arch) for kernel in kernels}


class Best(NamedTuple):
    """Predicted microseconds of each served problem, for the best of all kernels and for the best of a set.

    They are infinite for problems that the set does not serve.
    """

    every: Array
    chosen: Array


def best(predicted: Predicted, chosen: Collection[str]) -> Best:
    """Best times of a set of identities."""
    rows = [row for row, kernel in enumerate(predicted.kernels) if kernel.identity in chosen]
    served = np.isfinite(predicted.us).any(axis=0)
    return Best(predicted.us[:, served].min(axis=0), predicted.us[rows][:, served].min(axis=0, initial=np.inf))


def summary(us: Best) -> dict[str, Any]:
    """Predicted speed of a set's best kernel ÷ that of the best of all kernels: geometric mean, P10 and minimum.

    None of these if the set leaves some of the problems ``unserved``.
    """
    if unserved := int(np.isinf(us.chosen).sum()):
        return {"problems": len(us.every), "unserved": unserved}
    speed = np.sort(us.every / us.chosen)
    mean, tenth = math.exp(np.log(speed).mean()), float(speed[math.ceil(0.1 * len(speed)) - 1])
    return {"problems": len(speed), "mean": round(mean, 4), "P10": round(tenth, 4), "least": round(float(speed[0]), 4)}

"""The rule set ``full``: tables of tiles, and the fields that each is combined with.

``data/ck_tile/full/<direction>.json`` has a row for each tile: its wave grids (with warp tiles, where they do not
follow from the tile), and for 16-bit floats (``half``) and ``fp32`` the vectors and pipelines, and the spatial
dimensions if these are not both 2 and 3. ``features`` combine tiles with further fields, on the tile's pipelines unless
they name others. The rest follows from rules of this module. What an architecture cannot do is left out, by the rules
of
:mod:`.constraints.common`.
"""

from __future__ import annotations

import functools
import importlib.resources
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Extent
from kernelwright.codegen.operations.convolution.instances import extent_of, read_instances, vectors_of
from kernelwright.codegen.operations.convolution.spec import (
    ConvEpilogue,
    ConvPipeline,
    ConvScheduler,
    Direction,
    GroupedConvSpec,
    Vectors,
)
from kernelwright.problems.convolution.description import ConvLayout, Specialization

_DTYPES: Mapping[str, Sequence[DType]] = {"half": (DType.FP16, DType.BF16), "fp32": (DType.FP32,)}
_LAYOUTS: Mapping[int, ConvLayout] = {2: ConvLayout.NHWGC, 3: ConvLayout.NDHWGC}
_GRADIENTS = (Specialization.DEFAULT, Specialization.FILTER1X1_STRIDE1_PAD0)
_FORWARD = (Specialization.DEFAULT, Specialization.FILTER1X1_PAD0, Specialization.FILTER1X1_STRIDE1_PAD0)
_SMALL_TILE = 64 * 64
# K of the matrix instruction by elements and extent along M; and the least K of a warp tile.
_INSTRUCTION_K = {("half", 32): 16, ("half", 16): 32, ("fp32", 32): 2, ("fp32", 16): 4}
_SHORT_K = {32: 8, 16: 16}


@dataclass(frozen=True)
class Feature:
    """Fields that one row of features sets, and the fields that it is combined with; None: as the tile has it."""

    fields: Mapping[str, Any]
    pipelines: tuple[str, ...] | None = None
    dims: tuple[int, ...] | None = None
    short_warp_k: bool = False


_PLAIN = Feature({})


def full_specs() -> Iterator[GroupedConvSpec]:
    """Yield every combination of the tables and the depthwise kernels, each once, legal on an architecture or not."""
    for direction in Direction:
        yield from _direction(direction)
    yield from read_instances("ck_tile", "profiler", "forward_depthwise")


def _direction(direction: Direction) -> Iterator[GroupedConvSpec]:
    table = _table(direction)
    for row in table["tiles"]:
        for elements in _DTYPES:
            if elements not in row:
                continue
            own = row[elements]
            for feature in _features(table, row["tile"], elements):
                pipelines = feature.pipelines or tuple(own["pipelines"])
                dims = feature.dims or tuple(own.get("dims", (2, 3)))
                for pipeline in pipelines:
                    short = feature.short_warp_k or _short(table, pipeline, row["tile"])
                    yield from _combined(direction, row, elements, feature.fields, pipeline, dims, short)


def _combined(
    direction: Direction,
    row: Mapping[str, Any],
    elements: str,
    fields: Mapping[str, Any],
    pipeline: str,
    dims: tuple[int, ...],
    short_warp_k: bool,
) -> Iterator[GroupedConvSpec]:
    tile = extent_of(row["tile"])
    name, _, scheduler = pipeline.partition(" ")
    shared = {
        "op": "convolution",
        "direction": direction,
        "tile": tile,
        "pipeline": ConvPipeline(name),
        "epilogue": ConvEpilogue.CSHUFFLE,
        "scheduler": ConvScheduler(scheduler or "intrawave"),
        "double_smem_buffer": name == ConvPipeline.COMPV4,
        **fields,
    }
    grids = [grid for waves in row["waves"] for grid in _grids(tile, waves, elements, short_warp_k)]
    vectors = [_vectors(text) for text in row[elements]["vectors"]]
    simplified = specializations(direction, tile)
    for (wave, warp), vector, special in itertools.product(grids, vectors, simplified):
        for dtype, dim in itertools.product(_DTYPES[elements], dims):
            yield GroupedConvSpec(
                **shared,
                dtype=dtype,
                layout=_LAYOUTS[dim],
                wave=wave,
                warp_tile=warp,
                vector=vector,
                specialization=special,
            )


def specializations(direction: Direction, tile: Extent) -> tuple[Specialization, ...]:
    """The specializations of a tile's kernels: default only for the shortest K, also 3x3 filters for small tiles."""
    if direction is not Direction.FORWARD:
        return _GRADIENTS
    if tile.k == 8:
        return (Specialization.DEFAULT,)
    return (*_FORWARD, Specialization.FILTER3X3) if tile.m * tile.n <= _SMALL_TILE else _FORWARD


def warp_tile_k(elements: str, m: int, tile_k: int, short: bool = False) -> int:
    """Return K of the warp tile: the instruction's, or enough for 16 bytes per lane, within the tile."""
    if short:
        return min(_SHORT_K[m], tile_k if elements == "half" else tile_k // 4)
    return min(max(4 if tile_k <= 16 else 8, _INSTRUCTION_K[elements, m]), tile_k)


def _grids(tile: Extent, waves: str, elements: str, short: bool) -> list[tuple[Extent, Extent]]:
    """Return wave grids with warp tiles: 32x32 where a wave's part of the tile is a multiple of it, otherwise 16x16."""
    grid, *stated = waves.split()
    wave = extent_of(grid)
    sides = [int(text.partition("x")[0]) for text in stated]
    whole = tile.m // wave.m % 32 == 0 and tile.n // wave.n % 32 == 0
    warp_sides = sides or [32 if whole else 16]
    return [(wave, Extent(m=side, n=side, k=warp_tile_k(elements, side, tile.k, short))) for side in warp_sides]


def _features(table: Mapping[str, Any], tile: str, elements: str) -> Iterator[Feature]:
    yield _PLAIN
    for entry in table["features"]:
        if tile in entry["tiles"] and elements in entry.get("elements", _DTYPES):
            pipelines, dims = entry.get("pipelines"), entry.get("dims")
            yield Feature(
                entry["fields"],
                None if pipelines is None else tuple(pipelines),
                None if dims is None else tuple(dims),
                entry.get("short_warp_k", False),
            )


def _short(table: Mapping[str, Any], pipeline: str, tile: str) -> bool:
    return any(entry["pipeline"] == pipeline and tile in entry["tiles"] for entry in table["short_warp_k"])


@functools.cache
def _vectors(text: str) -> Vectors:
    return vectors_of(text.replace(" ", ","))


@functools.cache
def _table(direction: Direction) -> Mapping[str, Any]:
    folder = importlib.resources.files("kernelwright.codegen.operations.convolution").joinpath(
        "data", "ck_tile", "full"
    )
    table: Mapping[str, Any] = json.loads(folder.joinpath(f"{direction}.json").read_text("utf-8"))
    return table

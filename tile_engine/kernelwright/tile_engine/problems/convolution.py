"""Convolution problems of networks: the layers of their stages, each with some numbers of images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from kernelwright.tile_engine.operation import ProblemSets, Record
from kernelwright.tile_engine.problems.convolution_edges import DIRECTIONS, conv_edges
from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS, TUNING
from kernelwright.tile_engine.problems.networks import Layer, layers, networks

BATCHES: tuple[tuple[int, ...], ...] = ((1, 2, 3), (4, 7, 8), (16, 24, 32))
"""Numbers of images: single ones, a few, a batch; 3D images use the first two kinds."""
_DTYPES = ("fp32", "fp16", "bf16")
_SETS = {
    f"conv-{part}-{direction}-{dims}d-{dtype}": (part, direction, dims, dtype)
    for part in PARTS
    for direction in DIRECTIONS
    for dims in (2, 3)
    for dtype in _DTYPES
}
# All directions in turns, so this many problems for each number of dimensions.
_VALIDATION = {2: 250, 3: 50}
_VALIDATIONS = {f"conv-validation-{dtype}": dtype for dtype in _DTYPES}
_EDGES = {f"conv-edges-{dtype}": dtype for dtype in _DTYPES}


@dataclass(frozen=True)
class LayerProblem:
    """A layer with a number of images, and the network it comes from."""

    layer: Layer
    images: int
    dims: int
    network: str
    family: str


def conv_problems(part: str, dims: int) -> tuple[LayerProblem, ...]:
    """The problems of a part's networks, each once; the number of images follows from a layer's position.

    Held-out layers with the extents of a tuning layer are left out, whatever their images. Raises ValueError for a part
    that is not in PARTS.
    """
    if part not in PARTS:
        raise ValueError(f"no part of the networks is called {part!r}; allowed: {', '.join(PARTS)}")
    problems = list(_problems(part, dims))
    if part == HELD_OUT:
        tuned = {one.layer for one in _problems(TUNING, dims)}
        problems = [one for one in problems if one.layer not in tuned]
    unique = {(one.layer, one.images): one for one in reversed(problems)}
    return tuple(reversed(unique.values()))


def _problems(part: str, dims: int) -> Iterator[LayerProblem]:
    place = 0
    for network in networks():
        if network.part != part or network.dims != dims:
            continue
        for layer in layers(network):
            for kind, images in enumerate(BATCHES[: 5 - dims]):
                count = images[(place + kind) % len(images)]
                yield LayerProblem(layer, count, dims, network.name, network.family)
            place += 1


_LAYER = ("c", "k", "g", "di", "hi", "wi", "z", "y", "x", "stride_h", "pad_h", "dilation_h")


def layer_of(record: Record) -> tuple[int, ...]:
    """A record's layer, without images and direction."""
    return tuple(record[name] for name in _LAYER)


def conv_families() -> dict[tuple[int, ...], str]:
    """The family of the first network with a layer, by :func:`layer_of`."""
    problems = [one for part in PARTS for dims in (2, 3) for one in conv_problems(part, dims)]
    fixed = {"di": 1, "z": 1}
    return {layer_of({**fixed, **_record(one, "forward", "fp32")}): one.family for one in reversed(problems)}


@cache
def conv_origins() -> Mapping[tuple[int, ...], tuple[str, str]]:
    """The first network with a layer, and a short description of the layer, by :func:`layer_of`."""
    every = [one for part in PARTS for dims in (2, 3) for one in conv_problems(part, dims)]
    fixed = {"di": 1, "z": 1}
    return {
        layer_of({**fixed, **_record(one, "forward", "fp32")}): (one.network, _described(one.layer))
        for one in reversed(every)
    }


def _described(layer: Layer) -> str:
    groups = f", {layer.groups} groups" if layer.groups > 1 else ""
    return f"{layer.c} to {layer.k} channels, filter {layer.filter}, stride {layer.stride}{groups}"


def _records(named: str) -> list[Record]:
    if named in _SETS:
        part, direction, dims, dtype = _SETS[named]
        return [_record(one, direction, dtype) for one in conv_problems(part, dims)]
    if named in _EDGES:
        return [{**fields, "dtype": _EDGES[named]} for fields in conv_edges()]
    records: list[Record] = []
    for dims, most in _VALIDATION.items():
        problems = conv_problems(HELD_OUT, dims)
        step = max(1, len(problems) // most)
        chosen = problems[::step][:most]
        records += [
            _record(one, DIRECTIONS[place % len(DIRECTIONS)], _VALIDATIONS[named]) for place, one in enumerate(chosen)
        ]
    return records


def _record(one: LayerProblem, direction: str, dtype: str) -> Record:
    axes = "dhw"[3 - one.dims :]
    layer = one.layer
    extents = {f"{axis}i": layer.size for axis in axes} | dict.fromkeys("zyx"[3 - one.dims :], layer.filter)
    along = {"stride": layer.stride, "pad": layer.padding, "dilation": layer.dilation}
    moved = {f"{word}_{axis}": value for word, value in along.items() for axis in axes}
    counts = {"n": one.images, "c": layer.c, "k": layer.k, "g": layer.groups}
    return {"direction": direction, **counts, **extents, **moved, "dtype": dtype}


CONV_SETS = ProblemSets((*_SETS, *_VALIDATIONS, *_EDGES), _records)

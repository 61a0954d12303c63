"""Convolution problems of networks: the layers of their stages, each with some numbers of images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS, TUNING

BATCHES: tuple[tuple[int, ...], ...] = ((1, 2, 3), (4, 7, 8), (16, 24, 32))
"""Images: single ones, a few, a batch; 3D images meet the first two kinds."""
DIRECTIONS = ("forward", "backward_data", "backward_weight")
_COLOURS = 3


@dataclass(frozen=True)
class Network:
    """A convolutional network.

    :ivar dims: 2 or 3.
    :ivar stages: extent of the image along each dimension, and channels.
    :ivar layers: kinds of the layers of a stage.
    :ivar stem: extent of the filter of the first layer, which halves the image; 0 for none.
    """

    name: str
    family: str
    part: str
    dims: int
    stages: tuple[tuple[int, int], ...]
    layers: tuple[str, ...]
    stem: int = 0


@dataclass(frozen=True)
class Layer:
    """One convolution; extents are the same along each dimension."""

    c: int
    k: int
    size: int
    filter: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1


@dataclass(frozen=True)
class LayerProblem:
    """A layer with a number of images, and the network that it comes from."""

    layer: Layer
    images: int
    dims: int
    network: str
    family: str


def networks() -> tuple[Network, ...]:
    """Every network of ``data/conv_models.json``. ValueError for an unknown key, part or kind of layer."""
    text = resources.files(__package__).joinpath("data/conv_models.json").read_text("utf-8")
    return tuple(map(read_network, json.loads(text)["networks"]))


def read_network(record: dict[str, Any]) -> Network:
    """A network of its JSON record. ValueError for an unknown key, part or kind of layer."""
    if unknown := set(record) - {field.name for field in fields(Network)}:
        raise ValueError(f"{record.get('name')}: unknown keys {sorted(unknown)}")
    if record["part"] not in PARTS:
        raise ValueError(f"{record['name']}: part is {record['part']!r}; allowed: {', '.join(PARTS)}")
    stages = tuple((size, channels) for size, channels in record["stages"])
    made = Network(**{**record, "stages": stages, "layers": tuple(record["layers"])})
    for kind in made.layers:
        _layer(kind, *made.stages[0])
    return made


def conv_problems(part: str, dims: int) -> tuple[LayerProblem, ...]:
    """The problems of the networks of a part, each once; the numbers of images follow from a layer's place.

    Held-out layers with the extents of a tuning layer are left out, whatever their images. ValueError for a part that
    is none of PARTS.
    """
    if part not in PARTS:
        raise ValueError(f"no part of the networks is called {part!r}; allowed: {', '.join(PARTS)}")
    posed = list(_problems(part, dims))
    if part == HELD_OUT:
        tuned = {one.layer for one in _problems(TUNING, dims)}
        posed = [one for one in posed if one.layer not in tuned]
    found = {(one.layer, one.images): one for one in reversed(posed)}
    return tuple(reversed(found.values()))


def _problems(part: str, dims: int) -> Iterator[LayerProblem]:
    place = 0
    for network in networks():
        if network.part != part or network.dims != dims:
            continue
        for layer in _layers(network):
            for kind, images in enumerate(BATCHES[: 5 - dims]):
                count = images[(place + kind) % len(images)]
                yield LayerProblem(layer, count, dims, network.name, network.family)
            place += 1


def _layers(network: Network) -> Iterator[Layer]:
    if network.stem:
        size, channels = network.stages[0]
        yield Layer(_COLOURS, channels, 2 * size, network.stem, 2, network.stem // 2)
    for size, channels in network.stages:
        yield from (_layer(kind, size, channels) for kind in network.layers)


def _layer(kind: str, size: int, c: int) -> Layer:
    word, _, number = kind.partition(" ")
    n = int(number or 0)
    made = {
        "1x1": Layer(c, c, size, 1),
        "3x3": Layer(c, c, size, 3, padding=1),
        "5x5": Layer(c, c, size, 5, padding=2),
        "down": Layer(c, 2 * c, size, 3, stride=2, padding=1),
        "project": Layer(c, 2 * c, size, 1, stride=2),
        "expand": Layer(c, c * n, size, 1),
        "reduce": Layer(c * n, c, size, 1),
        "dilated": Layer(c, c, size, 3, padding=n, dilation=n),
        "grouped": Layer(c, c, size, 3, padding=1, groups=n),
        "depthwise": Layer(c, c, size, n, padding=n // 2, groups=c),
    }
    if word not in made:
        raise ValueError(f"no layer is of kind {kind!r}; allowed: {', '.join(made)}")
    return made[word]

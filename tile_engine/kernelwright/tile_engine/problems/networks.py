"""Convolutional networks and the layers of their stages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from kernelwright.tile_engine.problems.models import PARTS

_COLOURS = 3


@dataclass(frozen=True)
class Network:
    """A convolutional network.

    :ivar dims: 2 or 3.
    :ivar stages: extent of the image in each dimension, and channels.
    :ivar layers: kinds of layers of a stage.
    :ivar stem: filter extent of the first layer, which halves the image; 0 for none.
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
    """One convolution; extents are equal in all dimensions."""

    c: int
    k: int
    size: int
    filter: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1


def networks() -> tuple[Network, ...]:
    """Every network of ``data/conv_models.json``. Raises ValueError for an unknown key, part or kind of layer."""
    text = resources.files(__package__).joinpath("data/conv_models.json").read_text("utf-8")
    return tuple(map(read_network, json.loads(text)["networks"]))


def read_network(record: dict[str, Any]) -> Network:
    """Read a network from its JSON record. Raises ValueError for an unknown key, part or kind of layer."""
    if unknown := set(record) - {field.name for field in fields(Network)}:
        raise ValueError(f"{record.get('name')}: unknown keys {sorted(unknown)}")
    if record["part"] not in PARTS:
        raise ValueError(f"{record['name']}: part is {record['part']!r}; allowed: {', '.join(PARTS)}")
    stages = tuple((size, channels) for size, channels in record["stages"])
    made = Network(**{**record, "stages": stages, "layers": tuple(record["layers"])})
    for kind in made.layers:
        _layer(kind, *made.stages[0])
    return made


def layers(network: Network) -> Iterator[Layer]:
    """The layers of a network, the stem first."""
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

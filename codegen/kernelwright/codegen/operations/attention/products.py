"""Products of features: lists of values whose combinations are the kernels of a line of an architecture's table."""

from __future__ import annotations

import functools
import importlib.resources
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.codegen.operations.attention.spec import Pad


@dataclass(frozen=True)
class Point:
    """The features of one kernel: fields of its spec. ``extended`` marks combinations that only some receipts list."""

    fields: Mapping[str, Any]
    extended: bool


@functools.cache
def product_names() -> tuple[str, ...]:
    """Return the names of all products, in file order."""
    return tuple(_read())


@functools.cache
def points(product: str) -> tuple[Point, ...]:
    """Return every combination of a product, in the order of its values; KeyError if there is none of that name.

    A product is a list of ``{field: [value, …]}``. ``pad`` is written as four letters for queries, keys and the head
    dimensions of Q and V: t where any number is handled. ``bwd_pad`` holds the alignments of both head dimensions
    instead: 0 where none is padded, else its divisor.
    """
    return tuple(point for part in _read()[product] for point in _points(part))


def _points(part: Mapping[str, Any]) -> Iterator[Point]:
    axes = {name: values for name, values in part.items() if name != "extended"}
    for values in itertools.product(*axes.values()):
        fields: dict[str, Any] = {}
        for name, value in zip(axes, values, strict=True):
            fields.update(_written(name, value))
        yield Point(fields, bool(part.get("extended", False)))


def _written(name: str, value: Any) -> Mapping[str, Any]:
    if name == "pad":
        return {"pad": _pad(*(letter == "t" for letter in value))}
    if name == "bwd_pad":
        q, v = value
        return {"pad": _pad(True, True, q > 0, v > 0), "hdim_q_alignment": q, "hdim_v_alignment": v}
    return {name: value}


@functools.cache
def _pad(s: bool, sk: bool, d: bool, dv: bool) -> Pad:
    return Pad(s=s, sk=sk, d=d, dv=dv)


@functools.cache
def _read() -> Mapping[str, list[Mapping[str, Any]]]:
    folder = importlib.resources.files("kernelwright.codegen.operations.attention").joinpath("data")
    raw: dict[str, list[Mapping[str, Any]]] = json.loads(folder.joinpath("products.json").read_text("utf-8"))
    return raw

"""Rule sets written kernel by kernel: ``data/<backend or arch>/<set>/<direction>.conf``.

The first line names the columns. A line stands for a kernel of each of its layouts and dtypes; ``further fields`` are
fields of the spec, as ``field=value``, or ``field`` for True. Blank lines and further lines that begin with ``#`` are
comments.
"""

from __future__ import annotations

import functools
import importlib.resources
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kernelwright.codegen.fields import Extent
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec, Plane, Vectors
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.violations import SpecError

FILES = (
    *("forward", "backward_data", "backward_weight"),
    *("forward_depthwise", "backward_data_depthwise", "backward_weight_depthwise"),
)
"""The files of a set, whose names begin with their direction."""

_ONE = Extent(m=1, n=1, k=1)


@functools.cache
def extent_of(text: str) -> Extent:
    """Parse extents such as ``128x128x32``; ValueError for anything else."""
    m, n, k = map(int, text.split("x"))
    return Extent(m=m, n=n, k=k)


@functools.cache
def plane_of(text: str) -> Plane:
    """Parse extents such as ``8x8``; ValueError for anything else."""
    h, w = map(int, text.split("x"))
    return Plane(h=h, w=w)


@functools.cache
def vectors_of(text: str) -> Vectors:
    """Parse vectors such as ``8,8,4``; ValueError for anything else."""
    a, b, c = map(int, text.split(","))
    return Vectors(a=a, b=b, c=c)


# Column → field, and the parser of its text.
_COLUMNS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "tile": ("tile", extent_of),
    "waves": ("wave", extent_of),
    "warp tile": ("warp_tile", extent_of),
    "pipeline": ("pipeline", str),
    "scheduler": ("scheduler", str),
    "vectors": ("vector", vectors_of),
    "specialization": ("specialization", str),
    "image tile": ("image_tile", plane_of),
    "filter": ("filter", plane_of),
    "stride": ("stride", plane_of),
    "padding": ("padding", plane_of),
    "images": ("images", int),
    "subtile": ("subtile", plane_of),
}


@functools.cache
def read_instances(backend: str, name: str, file: str) -> tuple[GroupedConvSpec, ...]:
    """Return the specs of ``data/<backend>/<name>/<file>.conf`` in line order; none if there is no such file."""
    root = importlib.resources.files("kernelwright.codegen.operations.convolution")
    path = root.joinpath("data", backend, name, f"{file}.conf")
    if not path.is_file():
        return ()
    return tuple(parse_instances(path.read_text("utf-8"), file, f"{name}/{file}.conf"))


def parse_instances(text: str, file: str, origin: str) -> Iterator[GroupedConvSpec]:
    """Yield the specs of a configuration file called ``file``; SpecError, with the line, for unreadable text."""
    head, *lines = text.splitlines()
    columns = _columns(head, origin)
    for number, line in enumerate(lines, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield from _instances(line.split(), columns, file)
        except ValueError as error:  # includes SpecError
            raise SpecError(f"{origin}:{number}: {line.strip()!r} is no kernel: {error}") from None


def _columns(head: str, origin: str) -> list[str]:
    """Return the columns that the first line names, by matching known names, which may contain blanks."""
    rest, columns = head.lstrip("# "), []
    names = ("layouts", "dtypes", *_COLUMNS, "further fields")
    while rest:
        name = next((name for name in names if rest == name or rest.startswith(f"{name} ")), None)
        if name is None:
            raise SpecError(f"{origin}:1: no column is called {rest!r}; allowed: {', '.join(names)}")
        columns.append(name)
        rest = rest.removeprefix(name).lstrip()
    return columns


def _instances(words: list[str], columns: list[str], file: str) -> Iterator[GroupedConvSpec]:
    depthwise = file.endswith("_depthwise")
    fields: dict[str, Any] = {
        "op": "convolution",
        "direction": file.removesuffix("_depthwise"),
        "depthwise": depthwise,
        "epilogue": "default" if depthwise else "cshuffle",
    }
    if depthwise:
        fields |= {"tile": _ONE, "wave": _ONE, "warp_tile": _ONE, "pipeline": "direct", "scheduler": "default"}
    named = [name for name in columns if name != "further fields"]
    for name, word in zip(named, words[: len(named)], strict=True):
        if name in _COLUMNS:
            field, read = _COLUMNS[name]
            fields[field] = read(word)
    for word in words[len(named) :]:
        field, equals, value = word.partition("=")
        fields[field] = (int(value) if value.isdecimal() else value) if equals else True
    layouts, dtypes = (words[columns.index(name)].split(",") for name in ("layouts", "dtypes"))
    for layout, dtype in itertools.product(layouts, dtypes):
        spec = build_spec({**fields, "layout": layout, "dtype": dtype})
        assert isinstance(spec, GroupedConvSpec)
        yield spec

"""Receipts: filters that select the kernels of the architecture's table for an integration of CK Tile."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.selecting.filters import compile_expression


@dataclass(frozen=True)
class Receipt:
    """A filter over the fields of specs, in the language of filters. ``id`` is CK Tile's number, if it has one.

    ``extended``: the receipt also takes combinations of features that are listed for such receipts only.
    """

    name: str
    about: str
    filter: str
    id: int | None = None
    extended: bool = False

    @functools.cached_property
    def keeps(self) -> Callable[[Mapping[str, Any]], Any]:
        """The filter as a function of a spec's fields."""
        return compile_expression(self.filter, tuple(AttentionSpec.model_fields))


@functools.cache
def receipts() -> Mapping[str, Receipt]:
    """Return every receipt by name, in file order."""
    folder = importlib.resources.files("kernelwright.codegen.operations.attention").joinpath("data")
    raw = json.loads(folder.joinpath("receipts.json").read_text("utf-8"))
    return {name: Receipt(name=name, **fields) for name, fields in raw.items()}

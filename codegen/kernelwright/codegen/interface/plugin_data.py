"""The generator's data for the Pants plugin, which cannot import it: BUILD fields and trees, as one JSON document.

``rules/kernelwright/pants/data/generator.json`` is this document, checked in::

    schema_version  1
    operations      {operation: {"target": what BUILD files call a kernel, "about": one sentence, "fields": [field, …]}}
    trees           {name: {"about", "origin": "headers", "wheel" or "made", "globs": patterns of its files below its
                    root, "backend": the one that sees it, null for all, "licensed": whether libraries contain code of
                    it}}; a tree that is made has "of", the tree that it is made of, and "reads", the files that it is
                    made of
    wheels          {tree: {distribution: version}} of trees that are unpacked wheels
    python          {"word": that starts commands for the generator's Python, "files": patterns of what they read of it}
    slots           the shell script with which commands wait for memory, see building/slots.sh,
                    without its comments

A field has ``name``, ``kind``, ``help`` and what its kind has: ``text`` may have ``allowed`` values; ``int`` has
``minimum`` and may have ``maximum``; ``extents`` (one number for each of ``axes``) has both; ``bools`` (one truth value
for each of ``axes``) and ``bool`` have nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kernelwright.codegen.building.memory import SCRIPT, script_without_comments
from kernelwright.codegen.lean.made import reads
from kernelwright.codegen.operation import Operation, operation
from kernelwright.codegen.registry import OPERATIONS
from kernelwright.codegen.toolchains.python import FILES, PYTHON
from kernelwright.codegen.toolchains.wheels import WHEELS
from kernelwright.codegen.trees import Tree, all_trees

SCHEMA_VERSION = 1


def plugin_data_text() -> str:
    """Return the document as text: sorted keys, with a newline at its end."""
    return json.dumps(plugin_data(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def plugin_data() -> dict[str, Any]:
    """Return the document as data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "operations": {
            name: {
                "target": operation(name).spec_type.target or f"{name}_kernel",
                "about": (operation(name).spec_type.__doc__ or "").partition("\n")[0],
                "fields": [*_shorthands(operation(name)), *build_fields(operation(name).spec_type)],
            }
            for name in OPERATIONS
        },
        "trees": {name: _tree(name, tree) for name, tree in all_trees().items()},
        "wheels": {tree: dict(wheels) for tree, wheels in WHEELS.items()},
        "python": {"word": PYTHON, "files": list(FILES)},
        "slots": script_without_comments(SCRIPT.read_text(encoding="utf-8")),
    }


def _tree(name: str, tree: Tree) -> dict[str, Any]:
    told = {"about": tree.about, "globs": list(tree.globs), "backend": tree.backend, "licensed": bool(tree.license)}
    if tree.made_of:
        return {**told, "origin": "made", "of": tree.made_of, "reads": list(reads(name))}
    return {**told, "origin": "headers" if tree.own else "wheel"}


def build_fields(spec_type: type[BaseModel]) -> list[dict[str, Any]]:
    """Return the fields of a kernel target for a spec type, in the order of the model; ``op`` is the target's own."""
    return [_field(name, info) for name, info in spec_type.model_fields.items() if name != "op"]


def _shorthands(known: Operation) -> Iterator[dict[str, Any]]:
    for name, short in known.shorthands.items():
        yield {**_field(name, known.spec_type.model_fields[short.field]), "help": short.help}


def _field(name: str, info: FieldInfo) -> dict[str, Any]:
    kind = info.annotation
    field: dict[str, Any] = {"name": name, "help": info.description}
    if kind is bool:
        return {**field, "kind": "bool"}
    if kind is int:
        return {**field, "kind": "int", **_bounds(info)}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {**field, "kind": "text", "allowed": [str(member) for member in kind]}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        axes = kind.model_fields
        if all(axis.annotation is bool for axis in axes.values()):
            return {**field, "kind": "bools", "axes": list(axes)}
        return {**field, "kind": "extents", "axes": list(axes), **_bounds(next(iter(axes.values())))}
    raise TypeError(f"field {name} is of the type {kind}, for which BUILD files have no field")


def _bounds(info: FieldInfo) -> dict[str, int]:
    bounds: dict[str, int] = {}
    for constraint in info.metadata:
        for attribute, key, offset in (("ge", "minimum", 0), ("gt", "minimum", 1), ("le", "maximum", 0)):
            value = getattr(constraint, attribute, None)
            if value is not None:
                bounds[key] = value + offset
    return bounds

"""The headers generated from descriptions, and where they are checked in.

An operation is a folder of ``kernelwright.problems`` with a module ``description``; ``shared`` holds what they share.
"""

from __future__ import annotations

import functools
import importlib
import importlib.resources

from kernelwright.codegen.descriptions.headers import header_text
from kernelwright.codegen.descriptions.tables import table_text
from kernelwright.problems.fields import Header

_PACKAGE = "kernelwright.problems"


def headers() -> dict[str, str]:
    """Return the text of every header by its name in ``#include``."""
    shared = f"{_PACKAGE}.shared"
    texts = {one.path: header_text(one, shared) for one in _described(shared)}
    for operation in operations():
        module = f"{_PACKAGE}.{operation}.description"
        (header,) = _described(module)
        table = f"kernelwright/dispatcher/{operation}/problem_fields.hpp"
        texts |= {header.path: header_text(header, module), table: table_text(header, table, module)}
    return texts


@functools.cache
def declared_in() -> dict[object, str]:
    """Return the header that declares each enumeration and struct."""
    modules = ["shared", *(f"{operation}.description" for operation in operations())]
    described = [header for name in modules for header in _described(f"{_PACKAGE}.{name}")]
    return {part: header.path for header in described for part in header.parts}


def _described(module: str) -> tuple[Header, ...]:
    loaded = importlib.import_module(module)
    declared: tuple[Header, ...] = getattr(loaded, "HEADERS", None) or (loaded.HEADER,)
    return declared


def operations() -> list[str]:
    """Return the folders of operations that have a description."""
    folders = importlib.resources.files(_PACKAGE).iterdir()
    return sorted(one.name for one in folders if one.is_dir() and one.joinpath("description.py").is_file())

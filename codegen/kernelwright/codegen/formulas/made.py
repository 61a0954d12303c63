"""The C headers of formulas and rules, and where they are checked in.

A formula is a module in the folder ``formulas`` of an operation, rules are a module in its folder ``rules``;
``machine`` and ``shared`` of this package hold what all of them share. The header of a formula has its module's path
below ``kernelwright/dispatcher``, which is also the prefix of its names in C; rules state both themselves.
"""

from __future__ import annotations

import ast
import importlib.resources
import itertools
from collections.abc import Iterator

from kernelwright.codegen.formulas.translate import Source, translate
from kernelwright.codegen.formulas.types import FormulaError

_PACKAGE = "kernelwright.codegen"
_SHARED = ("formulas.machine", "formulas.products", "formulas.cdna", "formulas.shared")
_FOLDERS = ("formulas", "rules")


def formulas() -> Iterator[str]:
    """Yield the modules of formulas below ``kernelwright.codegen``, such as ``operations.gemm.formulas.hopper``."""
    yield from _SHARED
    operations = importlib.resources.files(_PACKAGE).joinpath("operations")
    for operation, kind in itertools.product(sorted(one.name for one in operations.iterdir()), _FOLDERS):
        folder = operations.joinpath(operation).joinpath(kind)
        if folder.is_dir():
            files = sorted((one for one in folder.iterdir() if one.name.endswith(".py")), key=lambda one: one.name)
            yield from (
                f"operations.{operation}.{kind}.{one.name.removesuffix('.py')}"
                for one in files
                if not one.name.endswith(("__init__.py", "_test.py"))
                and (kind == "formulas" or "HEADER" in _places(one.read_text("utf-8")))
            )


def find(module: str) -> Source:
    """Return a formula by its module. FormulaError if the module is not a formula."""
    if module not in formulas():
        raise FormulaError(f"{module!r} is no formula; allowed: {', '.join(formulas())}")
    package, _, name = module.rpartition(".")
    text = importlib.resources.files(f"{_PACKAGE}.{package}").joinpath(f"{name}.py").read_text("utf-8")
    path = f"codegen/{_PACKAGE}.{module}".replace(".", "/") + ".py"
    places = _places(text)
    if "HEADER" in places:
        return Source(text, places["PREFIX"], places["HEADER"], path, rules=True)
    operation = module.split(".")[1]
    prefix = f"kw_{name}" if module in _SHARED else f"kw_{operation}_{name}"
    place = f"support/{name}" if module in _SHARED else f"{operation}/formulas/{name}"
    return Source(text, prefix, f"kernelwright/dispatcher/{place}.h", path)


def _places(text: str) -> dict[str, str]:
    """Return string constants of a module by name: HEADER and PREFIX of rules."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
    return {
        ast.unparse(node.targets[0]): node.value.value
        for node in nodes
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def headers() -> dict[str, str]:
    """Return the text of every header by its name in ``#include``."""
    return {source.header: translate(source, find) for source in map(find, formulas())}

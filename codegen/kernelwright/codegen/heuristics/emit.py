"""The C source of a model: features as the schema has them, trees as tables, and a function that scores candidates."""

from __future__ import annotations

import re

from kernelwright.codegen.heuristics.model import Model
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.templates import read_template, render_template
from kernelwright.codegen.violations import SpecError


def emit(model: Model, name: str, part_of_library: bool = False) -> str:
    """Return C99 that includes this project's headers alone. SpecError for a name that is not a C identifier.

    On its own it is a library with the single symbol ``kw_heuristic_entry``; as part of a kernel library, the library's
    table names ``kw_model_<name>``.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
        raise SpecError(f"a heuristic's name is {name!r}; allowed: a C identifier of at most 64 characters")
    schema = schema_of(model.op)
    nodes: list[tuple[float, int, int, int]] = []
    roots: list[int] = []
    leaves: list[float] = []
    for tree in model.trees:
        first, first_leaf = len(nodes), len(leaves)
        roots.append(first if tree.feature else -1 - first_leaf)
        for feature, threshold, left, right in zip(tree.feature, tree.threshold, tree.left, tree.right, strict=True):
            below, above = (one + first if one >= 0 else one - first_leaf for one in (left, right))
            nodes.append((threshold, below, above, feature))
        leaves += tree.leaf
    columns = {feature: index for index, feature in enumerate(schema.features)}
    variables = {
        "name": name,
        "part_of_library": part_of_library,
        "model": model,
        "schema": schema,
        "expressions": list(schema.c_expressions.values()),
        "prior": columns[schema.prior] if schema.prior else None,
        "hull": [(columns[one], low, high) for one, (low, high) in model.hull.items()],
        "kernel_hull": [(schema.c_kernel_expressions[one], *bounds) for one, bounds in model.kernel_hull.items()],
        "nodes": nodes or [(0.0, 0, 0, 0)],
        "roots": roots,
        "leaves": leaves,
    }
    return render_template(read_template("kernelwright.codegen.heuristics", "templates/heuristic.c.jinja"), variables)

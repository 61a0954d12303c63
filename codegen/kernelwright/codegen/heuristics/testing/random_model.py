"""A model of random trees, for tests that need no training."""

from __future__ import annotations

import random
from typing import Any

from kernelwright.codegen.heuristics.schema import schema_of


def random_content(
    seed: int, dtype: str = "fp32", arch: str = "x86_64_v3", trees: int = 20, op: str = "gemm", most: float = 12.0
) -> dict[str, Any]:
    """Return content for :func:`kernelwright.codegen.heuristics.model.write_model`.

    The model covers problems whose features are 0 to ``most``: for GEMM, extents up to 4096.
    """
    draw, schema = random.Random(seed), schema_of(op)
    return {
        "op": op,
        "dtypes": [dtype],
        "arch": arch,
        "schema": schema.digest,
        "features": list(schema.features),
        "hull": {name: [0.0, most] for name in schema.problem_features},
        "trees": [_tree(draw, len(schema.features), draw.randrange(0, 12)) for _ in range(trees)],
        "provenance": {"data": ["nothing"]},
    }


def _tree(draw: random.Random, features: int, nodes: int) -> dict[str, list[Any]]:
    """Return a random tree; each node but the root replaces a leaf of an earlier one."""
    left, right = [-1] * nodes, [-1] * nodes
    for node in range(1, nodes):
        sides = [(side, at) for side in (left, right) for at in range(node) if side[at] < 0]
        side, at = draw.choice(sides)
        side[at] = node
    leaf = 0
    for at in range(nodes):
        for side in (left, right):
            if side[at] < 0:
                leaf += 1
                side[at] = -leaf
    return {
        "feature": [draw.randrange(features) for _ in range(nodes)],
        "threshold": [draw.choice([0.5, 1.0, 4.0, 16.0, 100.0]) * draw.random() for _ in range(nodes)],
        "left": left,
        "right": right,
        "leaf": [draw.uniform(-1, 1) for _ in range(nodes + 1)],
    }

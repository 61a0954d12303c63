"""Random convolutions: every dimension, group case, stride, dilation and padding, small enough for float64."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kernelwright.dispatch import ConvProblem

_EXTENTS = {1: 70, 2: 17, 3: 8}
_PER_GROUP = (1, 1, 2, 3, 4, 5, 8, 16, 17, 33)


def random_problems(seed: int, direction: str, dtype: str = "fp32", **fields: Any) -> Iterator[ConvProblem]:
    """Without end. ``fields`` are those of :class:`ConvProblem` that are the same in all."""
    rng = random.Random(f"{seed} {direction} {dtype}")
    while True:
        dims = rng.choice((1, 2, 2, 3))
        groups = rng.choice((1, 1, 1, 2, 3, 8, 17))
        c = rng.choice(_PER_GROUP)
        k = rng.choice((c, c, 1, 2, 7, 16, 40))
        shape: dict[str, Any] = {
            "n": rng.choice((1, 1, 2, 3)),
            "c": groups * c,
            "k": groups * k,
            "groups": groups,
            "size": [rng.randint(1, _EXTENTS[dims]) for _ in range(dims)],
            "filter": [rng.choice((1, 1, 2, 3, 3, 5)) for _ in range(dims)],
            "stride": [rng.choice((1, 1, 2, 3)) for _ in range(dims)],
            "dilation": [rng.choice((1, 1, 1, 2, 3)) for _ in range(dims)],
            "pad_left": [rng.randint(0, 3) for _ in range(dims)],
            "pad_right": [rng.randint(0, 3) for _ in range(dims)],
        }
        reaches = zip(*(shape[f] for f in ("size", "pad_left", "pad_right", "dilation", "filter")), strict=True)
        if all(size + left + right > dilation * (points - 1) for size, left, right, dilation, points in reaches):
            problem = ConvProblem(direction, dtype=dtype, **{**shape, **fields})
            yield with_gaps(problem, rng) if rng.random() < 0.3 else problem


def with_gaps(problem: ConvProblem, rng: random.Random) -> ConvProblem:
    """The same problem on parts of larger tensors: points, lines and images lie further apart."""
    strides = {}
    for field, channels, sizes in (
        ("stride_x", problem.c, problem.sizes), ("stride_y", problem.k, problem.out_size),
    ):  # fmt: skip
        step, steps = channels + rng.choice((0, 1, 5)), []
        for size in reversed(sizes):
            steps.insert(0, step)
            step = step * size + rng.choice((0, 3))
        strides[field] = (step, 1, *steps)
    names = ("n", "c", "k", "size", "filter", "groups", "stride", "dilation", "pad_left", "pad_right", "dtype")
    kept = {name: getattr(problem, name) for name in (*names, "bias", "residual", "activation", "alpha", "beta")}
    return ConvProblem(problem.direction, **kept, **strides)

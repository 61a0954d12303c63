"""Seeded problems at the edges: sizes 0 and 1, primes, powers of two and their neighbours, lines with gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """A problem for some kernel, whose spec says the rest: dtypes, layout, activation, how many D.

    ``gaps``: elements that a line of A, B, C and each D has beyond its extent. ``batch_gap``: elements between batches
    beyond their last line. ``shared``: which of A and B all batches share. ``bias``: D0 is one row for all.
    ``whole``: operands are small whole numbers, whose sums are exact. ``epilogue``: how many D, how they are combined,
    and the activation, for kernels that read these from the problem.
    """

    m: int
    n: int
    k: int
    gaps: tuple[int, int, int, int] = (0, 0, 0, 0)
    alpha: float = 1.0
    beta: float = 0.0
    c_is_d: bool = False
    split_k: int = 1
    batch: int = 1
    batch_gap: int = 0
    shared: str = ""
    bias: bool = False
    whole: bool = False
    seed: int = 0
    epilogue: tuple[int, str, str] | None = None

    def __str__(self) -> str:
        """For the names of tests and for messages: everything that is not as usual."""
        text = f"{self.m}x{self.n}x{self.k}"
        names = ("gaps", "alpha", "beta", "c_is_d", "split_k", "batch", "batch_gap", "shared", "bias", "whole")
        for name in (*names, "epilogue"):
            value = getattr(self, name)
            if value != getattr(type(self), name):
                text += f" {name}={value}"
        return f"{text} seed={self.seed}"


PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 31, 37, 61, 67, 97, 101, 127, 131, 193, 251, 257, 383, 509, 521, 769, 1009)


def extents(most: int) -> tuple[int, ...]:
    """0, 1, primes, powers of two and their neighbours, up to ``most``."""
    powers = [2**exponent + step for exponent in range(2, most.bit_length() + 1) for step in (-1, 0, 1)]
    return tuple(sorted({0, 1, *(extent for extent in (*PRIMES, *powers) if extent <= most)}))


def random_cases(
    count: int, *, seed: int = 0, most: int = 520, work: float = 4e6, align: int = 1, whole: bool = True
) -> Iterator[Case]:
    """``count`` cases, the same for the same arguments. ``work`` limits m·n·k·batch, ``most`` each extent.

    ``align`` makes gaps and inner extents multiples of so many elements, for backends that load whole vectors only;
    every other case is ``whole`` if that is asked for.
    """
    rng = np.random.default_rng(seed)
    choices = np.array(extents(most))
    for number in range(count):
        batch = int(rng.choice([1, 1, 1, 2, 3, 7]))
        while True:
            m, n, k = (int(extent) for extent in rng.choice(choices, 3))
            if align > 1:
                n, k = -(-n // align) * align, -(-k // align) * align
                m = -(-m // align) * align if rng.random() < 0.5 else m
            if m * n * k * batch <= work:
                break
        gaps = tuple(int(rng.choice([0, 0, 1, 3, 64])) * align for _ in range(4))
        if align > 1 and 0 in (m, n, k):  # an empty line without a gap would be 1 long, and batches of lines any number
            gaps = tuple(gap or align for gap in gaps)
        beta = float(rng.choice([0.0, 0.0, 1.0, -2.0]))
        yield Case(
            m, n, k,
            (gaps[0], gaps[1], gaps[2], gaps[3]),
            float(rng.choice([1.0, 1.0, 2.0, -0.5])),
            beta,
            beta != 0 and bool(rng.random() < 0.5),
            int(rng.choice([1, 0, 2, 3, 5])),
            batch,
            int(rng.choice([0, 5, 32])) * align,
            str(rng.choice(["", "", "a", "b"])),
            bool(rng.random() < 0.5),
            whole and number % 2 == 0,
            number,
        )  # fmt: skip

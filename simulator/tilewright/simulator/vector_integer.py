"""Lane-wise 32-bit integer arithmetic, logic and shifts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.simulator.instruction import Instruction
from tilewright.simulator.operands import vector_destination, vector_source
from tilewright.simulator.semantics import Step, semantics
from tilewright.simulator.target import Target
from tilewright.simulator.wave import Wave

_U31 = np.uint32(31)

# name → (function of the sources, kind of the result, kinds of the sources)
LANEWISE: dict[str, tuple[Callable[..., Any], str, tuple[str, ...]]] = {
    "v_mov_b32": (lambda a: a, "u32", ("u32",)),
    "v_add_u32": (np.add, "u32", ("u32", "u32")),
    "v_sub_u32": (np.subtract, "u32", ("u32", "u32")),
    "v_and_b32": (np.bitwise_and, "u32", ("u32", "u32")),
    "v_or_b32": (np.bitwise_or, "u32", ("u32", "u32")),
    "v_xor_b32": (np.bitwise_xor, "u32", ("u32", "u32")),
    "v_lshlrev_b32": (lambda a, b: b << (a & _U31), "u32", ("u32", "u32")),
}


def build_lanewise(instruction: Instruction, target: Target) -> Step:
    """A step that applies the table's function to all active lanes."""
    function, result, kinds = LANEWISE[instruction.name]
    sources = [vector_source(instruction, name, kind) for name, kind in zip(_names(instruction), kinds, strict=True)]
    write = vector_destination(instruction, result)
    if len(sources) == 2:
        first, second = sources

        def binary(wave: Wave) -> None:
            write(wave, function(first(wave), second(wave)))

        return binary
    return lambda wave: write(wave, function(*(source(wave) for source in sources)))


def _names(instruction: Instruction) -> list[str]:
    return [name for name in instruction.operands if "src" in name]


semantics(*LANEWISE, kind="vector")(build_lanewise)

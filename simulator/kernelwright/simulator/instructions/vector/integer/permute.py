"""v_perm_b32: a word of bytes picked from two others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import File, Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import bind, vector
from kernelwright.simulator.instructions.vector.operands import operand_at, sources
from kernelwright.simulator.instructions.vector.results import destination
from kernelwright.simulator.machine.operands import scalar_word
from kernelwright.simulator.machine.wave import Wave

_SIGNS, _ZERO, _ONES = 8, 12, 13


def permute_bytes(a: Any, b: Any, selectors: Any) -> Any:
    """Each byte of the selector picks one of (a:b)'s eight bytes, a sign (8-11), 0x00 (12) or 0xFF (13 and above)."""
    lanes = len(a)
    words = np.empty((lanes, 2), np.uint32)
    words[:, 0], words[:, 1] = b, a
    pool = np.empty((lanes, 14), np.uint8)
    pool[:, :_SIGNS] = words.view(np.uint8)
    pool[:, _SIGNS:_ZERO] = (pool[:, 1:8:2] >> 7) * np.uint8(255)
    pool[:, _ZERO], pool[:, _ONES] = 0, 255
    chosen = np.minimum(np.ascontiguousarray(selectors).view(np.uint8).reshape(lanes, 4), _ONES)
    return np.take_along_axis(pool, chosen.astype(np.intp), axis=1).view(np.uint32).reshape(lanes)


@lru_cache(maxsize=512)
def uniform_permutation(selector: int) -> Callable[[Any, Any], Any]:
    """The permutation of one selector for all lanes: shifted and masked words, one per byte distance."""
    bytes_ = [min(selector >> 8 * place & 255, _ONES) for place in range(4)]
    if any(_SIGNS <= byte < _ZERO for byte in bytes_):
        return lambda a, b: permute_bytes(a, b, np.full(len(a), selector, np.uint32))
    ones = sum(255 << 8 * place for place, byte in enumerate(bytes_) if byte == _ONES)
    masks: dict[tuple[bool, int], int] = {}
    for place, byte in enumerate(bytes_):
        if byte < _SIGNS:
            key = byte >= 4, 8 * (place - byte % 4)
            masks[key] = masks.get(key, 0) | 255 << 8 * place
    terms = [(upper, _shifted(shift, mask)) for (upper, shift), mask in masks.items()]

    def apply(a: Any, b: Any) -> Any:
        parts = [term(a if upper else b) for upper, term in terms]
        result = parts[0] if parts else np.zeros_like(a)
        for part in parts[1:]:
            result = result | part
        return result | np.uint32(ones) if ones else result

    return apply


def _shifted(shift: int, mask: int) -> Callable[[Any], Any]:
    """Return a function that shifts a word up by ``shift`` bits (down if negative) and masks it."""
    reach = 0xFFFFFFFF << shift & 0xFFFFFFFF if shift >= 0 else 0xFFFFFFFF >> -shift
    amount, kept = np.full(64, abs(shift), np.uint32), np.full(64, mask, np.uint32)
    move = np.left_shift if shift > 0 else np.right_shift

    def apply(word: Any) -> Any:
        lanes = len(word)
        moved = move(word, amount[:lanes]) if shift else word
        return moved if mask == reach else moved & kept[:lanes]

    return apply


@vector("v_perm_b32")
def build_perm(instruction: Instruction, target: Target) -> Step:
    """Permute bytes; in almost all cases, selectors are the same in all lanes."""
    selector = operand_at(instruction, 2)
    write = destination(instruction, target, "u32")
    if selector.file in (File.VGPR, File.AGPR):
        return bind(permute_bytes, sources(instruction, target, ("u32", "u32", "u32")), write)
    first, second = sources(instruction, target, ("u32", "u32"))
    read = scalar_word(selector)

    def step(wave: Wave) -> None:
        write(wave, uniform_permutation(read(wave))(first(wave), second(wave)))

    return step

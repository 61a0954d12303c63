"""Code objects with one instruction taken out, or another number of registers in a kernel descriptor."""

from __future__ import annotations

import itertools
import math
import struct

from kernelwright.simulator.checks.counters import counters_of, waits_of
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.object_file import CodeObject
from kernelwright.simulator.instructions.scalar.control import WAITS, target_of_branch
from kernelwright.simulator.tools.coverage import instructions_of

_NOP = struct.pack("<I", 0xBF800000)  # s_nop 0 on every architecture
_PT_LOAD, _PF_X = 1, 1


def without(image: bytes, *instructions: Instruction) -> bytes:
    """The image with s_nop in place of instructions; their ``pc`` counts from the start of the text."""
    patched, text = bytearray(image), text_offset(image)
    for instruction in instructions:
        at = text + instruction.pc
        patched[at : at + instruction.size] = _NOP * (instruction.size // 4)
    return bytes(patched)


def with_registers(
    image: bytes, code: CodeObject, kernel: str, *, vectors: int | None = None, accum_offset: int | None = None
) -> bytes:
    """The image with other register counts in a kernel's descriptor: multiples of 8, and of 4 for accum_offset."""
    (at,) = (symbol.address for symbol in code.symbols if symbol.name == f"{kernel}.kd")
    old = code.memory[at : at + 64]
    assert image.count(old) == 1
    new = bytearray(old)
    for offset, blocks in ((48, vectors and vectors // 8), (44, accum_offset and accum_offset // 4)):
        if blocks is not None:
            new[offset] = new[offset] & 0xC0 | blocks - 1
    return image.replace(old, bytes(new))


def text_offset(image: bytes) -> int:
    """Where the executable segment begins in the file."""
    (table,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for index in range(count):
        kind, flags, offset = struct.unpack_from("<IIQ", image, table + index * size)
        if kind == _PT_LOAD and flags & _PF_X:
            return int(offset)
    raise AssertionError("the code object has no executable segment")


def barriers(code: CodeObject, kernel: str) -> list[tuple[Instruction, ...]]:
    """The barriers of a kernel, each as the instructions it is made of (gfx12: a signal and the wait for it)."""
    instructions = [one for one in _function(code, kernel) if "s_barrier" in one.name]
    if not any("signal" in one.name for one in instructions):
        return [(one,) for one in instructions]
    signals, waits = instructions[::2], instructions[1::2]
    assert all("signal" in one.name for one in signals) and all("wait" in one.name for one in waits)
    return list(zip(signals, waits, strict=True))


def waits(code: CodeObject, kernel: str) -> list[tuple[Instruction, bool]]:
    """The waits for memory of a kernel, and whether a barrier follows: those may wait for nothing."""
    body = _function(code, kernel)
    return [(one, "s_barrier" in after.name) for one, after in itertools.pairwise(body) if one.name in WAITS]


def idle_waits(code: CodeObject, kernel: str) -> set[int]:
    """Where a wait allows as many as can be under way at most, so that nobody misses it.

    Compilers leave some: they do not look into inline assembly that waits. What is under way is counted along straight
    lines; behind a label it may be anything.
    """
    body = _function(code, kernel)
    labels = {target_of_branch(one) for one in body if "branch" in one.name}
    most: dict[str, float] = dict.fromkeys(("vmcnt", "lgkmcnt", "vscnt", "loadcnt", "storecnt", "dscnt", "kmcnt"), 0)
    idle = set()
    for one in body:
        if one.pc in labels:
            most = dict.fromkeys(most, math.inf)
        if one.name in WAITS:
            allowed = {counter: count for counter, count in waits_of(one, code.target).items() if counter in most}
            if all(most[counter] <= count for counter, count in allowed.items()):
                idle.add(one.pc)
            most.update({counter: min(most[counter], count) for counter, count in allowed.items()})
        for counter in counters_of(one, code.target)[0]:
            most[counter] += 1
    return idle


def _function(code: CodeObject, kernel: str) -> list[Instruction]:
    function = code.function_at(code.kernel(kernel).entry - code.text_start)
    end = function.address + function.nbytes
    return [one for one in instructions_of(code) if function.address <= one.pc < end]

"""The disassembly of whole code objects, assembled by the pinned clang, gives their bytes again."""

from __future__ import annotations

import io

import pytest
from elftools.elf.elffile import ELFFile

from gemm.amd import compiled
from gemm.amd.shipped import code_objects
from kernelwright.simulator.code.object_file import CodeObject, read_code_object
from kernelwright.simulator.tools.disassembly import functions, listing

# Of all instructions, how many may be printed as their words.
MOST_AS_WORDS = {"gfx942": 0.02, "gfx1201": 0.12}


def text_of(image: bytes) -> bytes:
    """The machine code of an object file."""
    return bytes(ELFFile(io.BytesIO(image)).get_section_by_name(".text").data())


def check(code: CodeObject) -> tuple[int, int]:
    """How many instructions there are, and how many of them are printed as words."""
    names = {symbol.name for symbol in code.symbols if symbol.function}
    parts = [instructions for _, instructions in functions(code, names)]
    wanted = b"".join(bytes(code.text[one.pc : one.pc + one.size]) for part in parts for one in part)
    lines = list(listing(code, names))
    assert text_of(compiled.assembled("\n".join(lines) + "\n", code.target.name))[: len(wanted)] == wanted
    return sum(map(len, parts)), sum(".long" in line for line in lines)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_shipped_kernels_are_assembled_to_the_same_bytes(arch: str) -> None:
    counts = [check(code) for _, code in code_objects(arch)]
    instructions, words = (sum(column) for column in zip(*counts, strict=True))
    assert instructions > 5000 and words <= MOST_AS_WORDS[arch] * instructions


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_ordinary_arithmetic_is_assembled_to_the_same_bytes(arch: str) -> None:
    instructions, _ = check(read_code_object(compiled.code_object("arithmetic", arch)))
    assert instructions > 1000


def test_the_listing_is_a_file_for_clang() -> None:
    code = read_code_object(compiled.code_object("arithmetic", "gfx942"))
    name = min(symbol.name for symbol in code.symbols if symbol.function)
    lines = list(listing(code, {name}))
    assert lines[:2] == ["// gfx942", f"{name}:"] and all(
        " // 0x" in line for line in lines[2:] if line.startswith(" ")
    )

from __future__ import annotations

import struct

import pytest

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.resources import cutlass
from kernelwright.codegen.resources.cutlass import ReportError

HGMMA, IGMMA_REGISTERS, STL, OTHER = 0x79F0, 0x7DF1, 0x7387, 0x7210


def read_report(data: bytes) -> dict[str, int]:
    return cutlass.read_report(data, Expectation(matrix_instructions=True))


def elf(machine: int, sections: dict[str, bytes | int]) -> bytes:
    """A 64-bit ELF file with these sections; a number is the size of a section without bytes."""
    names, data, headers = b"\0", b"", [struct.pack("<IIQQQQIIQQ", *[0] * 10)]
    for name, content in {**sections, ".shstrtab": b""}.items():
        at, names = len(names), names + name.encode() + b"\0"
        body = names if name == ".shstrtab" else b"" if isinstance(content, int) else content
        kind, size = (8, content) if isinstance(content, int) else (1, len(body))
        headers.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(data), size, 0, 0, 1, 0))
        data += body
    head = b"\x7fELF" + b"\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 1, machine, 1, 0, 0, 64 + len(data))
    head += struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    return head + data + b"".join(headers)


def attribute(number: int, *values: int) -> bytes:
    return struct.pack(f"<BBH{len(values)}I", 4, number, 4 * len(values), *values)


def device(kernel: str = "k", opcodes: tuple[int, ...] = (HGMMA, OTHER), stack: int = 0) -> bytes:
    code = b"".join(struct.pack("<Q8x", opcode & 0xFFF) for opcode in opcodes)
    return elf(
        190,
        {
            ".nv.info": attribute(0x2F, 9, 168) + attribute(0x11, 9, stack),
            f".nv.info.{kernel}": struct.pack("<BBH", 3, 0x1B, 168) + attribute(0x05, 384, 1, 1),
            f".text.{kernel}": code,
            f".nv.shared.{kernel}": 1024,
        },
    )


def host(code: bytes, threads: int = 384) -> bytes:
    resources = struct.pack("<4I", 16, 230400, threads, 4)
    return elf(62, {".text": b"\x90", ".nv_fatbin": bytes(80) + code, ".kernelwright.resources": resources})


def test_resources_are_read() -> None:
    assert read_report(host(device())) == {
        "registers": 168,
        "block_size": 384,
        "shared_bytes": 230400,
        "stages": 4,
        "stack_bytes": 0,
        "spill_instructions": 0,
        "matrix_instructions": 1,
        "code_bytes": 32,
    }


def test_matrix_instructions_count_in_every_form() -> None:
    opcodes = (HGMMA, IGMMA_REGISTERS, IGMMA_REGISTERS, OTHER)
    assert read_report(host(device(opcodes=opcodes)))["matrix_instructions"] == 3


def test_spills_show() -> None:
    report = read_report(host(device(opcodes=(HGMMA, STL, STL), stack=64)))
    assert (report["spill_instructions"], report["stack_bytes"]) == (2, 64)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"text", "not an ELF file"),
        (elf(62, {".text": b"\x90"}), "no uncompressed device code"),
        (host(b"\x28\xb5\x2f\xfd"), "no uncompressed device code"),
        (host(device()[:100]), "truncated"),
        (host(elf(190, {".nv.info": b""})), "device code of 0 kernels"),
        (host(device(), threads=256), "host launches 256 threads, device code was compiled for 384"),
    ],
)
def test_other_objects_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ReportError, match=message):
        read_report(data)

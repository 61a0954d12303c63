"""Code objects for tests: text, kernel descriptors and symbols, laid out as by the linker."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.testing.instructions import encode

_RODATA, _TEXT = 0x400, 0x1000
Line = tuple[object, ...]  # (encoding, name) or (encoding, name, fields)


@dataclass(frozen=True)
class Kernel:
    """A kernel whose argument pointer is in s[0:1] and whose workgroup ids follow (gfx12 has them in ttmp).

    ``vectors`` is the number of vector registers that its descriptor allocates, in blocks of 8; ``accum_offset`` is the
    first AGPR among them on CDNA, in blocks of 4; ``sgprs`` counts in blocks of 16 there and has no meaning on RDNA.
    ``hidden`` are hidden arguments (kind, offset, bytes) after one explicit argument; with None, the kernel has no
    metadata.
    """

    text: bytes
    lds: int = 0
    scratch: int = 0
    arguments: int = 8
    mode: int = 0xF0
    workitem_ids: int = 1
    vectors: int = 512
    accum_offset: int = 256
    sgprs: int = 112
    hidden: tuple[tuple[str, int, int], ...] | None = None

    def descriptor(self, arch: str, entry: int) -> bytes:
        """Its 64 bytes; ``entry`` is relative to them."""
        user_sgprs = 2
        rsrc2 = int(self.scratch > 0) | user_sgprs << 1 | 7 << 7 | (self.workitem_ids - 1) << 11
        cdna = TARGETS[arch].cdna
        rsrc1 = self.mode << 12 | ((self.vectors if cdna else min(256, self.vectors)) // 8 - 1)
        rsrc1 |= (self.sgprs // 16 - 1) * 2 << 6 if cdna else 0
        rsrc3 = self.accum_offset // 4 - 1 if cdna else 0
        properties = 1 << 3 | (0 if cdna else 1 << 10)
        data = struct.pack("<IIII", self.lds, self.scratch, self.arguments, 0) + struct.pack("<q", entry) + bytes(20)
        return data + struct.pack("<IIIHHI", rsrc3, rsrc1, rsrc2, properties, 0, 0)

    def metadata(self, name: str) -> dict[str, object]:
        """Its entry in the metadata of a code object."""
        hidden = self.hidden or ()
        explicit = min([self.arguments, *(offset for _, offset, _ in hidden)])
        listed = [("by_value", 0, explicit), *((f"hidden_{kind}", *place) for kind, *place in hidden)]
        arguments = [{".value_kind": kind, ".offset": offset, ".size": nbytes} for kind, offset, nbytes in listed]
        return {".symbol": f"{name}.kd", ".kernarg_segment_size": self.arguments, ".args": arguments}


def assemble_text(arch: str, lines: Sequence[Line]) -> bytes:
    """The machine code of a sequence of instructions, each (encoding, name) or (encoding, name, {field: value})."""
    code = b""
    for encoding, name, *fields in lines:
        code += encode(arch, str(encoding), str(name), **(fields[0] if fields else {}))  # type: ignore[arg-type]
    return code


def metadata_note(kernels: Mapping[str, Kernel]) -> bytes:
    """The note with the metadata of the kernels that have some."""
    listed = [kernel.metadata(name) for name, kernel in kernels.items() if kernel.hidden is not None]
    data = _packed({"amdhsa.kernels": listed})
    return struct.pack("<III", 7, len(data), 32) + b"AMDGPU\0\0" + data.ljust(-(-len(data) // 4) * 4, b"\0")


def _packed(value: object) -> bytes:
    """MessagePack in its longest forms."""
    if isinstance(value, dict):
        return struct.pack(">BI", 0xDF, len(value)) + b"".join(_packed(part) for item in value.items() for part in item)
    if isinstance(value, list):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(_packed, value))
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value.encode())) + value.encode()
    return struct.pack(">BQ", 0xCF, value)


def make_object(arch: str, kernels: Mapping[str, Kernel]) -> bytes:
    """An ELF file with these kernels."""
    rodata, text = b"", b""
    symbols: list[tuple[str, int, int, int]] = []  # name, address, size, type
    for name, kernel in kernels.items():
        at, entry = _RODATA + len(rodata), _TEXT + len(text)
        rodata += kernel.descriptor(arch, entry - at)
        symbols += [(name, entry, len(kernel.text), 2), (f"{name}.kd", at, 64, 1)]
        text += kernel.text.ljust(-(-len(kernel.text) // 256) * 256, b"\0")
    note = metadata_note(kernels)
    note_at = _RODATA + len(rodata)
    rodata += note
    names, table = b"\0", bytes(24)
    for name, address, size, kind in symbols:
        table += struct.pack("<IBBHQQ", len(names), 0x10 | kind, 0, 1, address, size)
        names += name.encode() + b"\0"
    body = rodata.ljust(_TEXT - _RODATA, b"\0") + text
    tables = _RODATA + len(body)
    tables += -tables % 8
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, tables, len(table), 2, 1, 8, 24)  # SHT_SYMTAB
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, tables + len(table), len(names), 0, 0, 1, 0)  # SHT_STRTAB
    at = tables + len(table) + len(names)
    at += -at % 8
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, _RODATA + len(rodata), _RODATA + len(rodata), 4096)
    segments += struct.pack("<IIQQQQQQ", 1, 5, _TEXT, _TEXT, _TEXT, len(text), len(text), 4096)
    segments += struct.pack("<IIQQQQQQ", 4, 4, note_at, note_at, note_at, len(note), len(note), 4)
    header = b"\x7fELF\x02\x01\x01\x40\x04" + bytes(7)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, at, TARGETS[arch].machine, 64, 56, 3, 64, 3, 0)
    data = (header + segments).ljust(_RODATA, b"\0") + body
    return (data.ljust(tables, b"\0") + table + names).ljust(at, b"\0") + sections


def run_lines(
    arch: str,
    lines: Sequence[Line],
    *,
    simulator: Simulator | None = None,
    block: int = 1,
    groups: int = 1,
    lds: int = 0,
    scratch: int = 0,
    out: NDArray[np.uint32] | None = None,
) -> NDArray[np.uint32]:
    """Run instructions and ``s_endpgm`` as a kernel whose only argument, at s[0:1], is the address of ``out``."""
    text = assemble_text(arch, [*lines, ("SOPP", "s_endpgm")])
    image = make_object(arch, {"k": Kernel(text, lds=lds, scratch=scratch)})
    out = np.zeros(max(1, block * groups), np.uint32) if out is None else out
    (simulator or Simulator()).launch(
        image,
        "k",
        grid=(groups, 1, 1),
        block=(block, 1, 1),
        arguments=struct.pack("<Q", out.ctypes.data),
        buffers=[Buffer(out.ctypes.data, out.nbytes, name="out")],
    )
    return out

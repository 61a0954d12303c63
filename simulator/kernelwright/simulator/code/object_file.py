"""AMDGPU code objects: where they lie in a library, segments, kernels (LLVM, AMDGPUUsage, "Code Object")."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kernelwright.simulator.code.descriptor import DESCRIPTOR_BYTES, KernelDescriptor, read_descriptor
from kernelwright.simulator.code.target import Target, target_of
from kernelwright.simulator.errors import ObjectError

_MAGIC = b"\x7fELF\x02\x01"  # ELF, 64 bits, little endian
_EM_AMDGPU = 224
_PT_LOAD, _SHT_SYMTAB, _SHT_DYNSYM = 1, 2, 11
_STT_OBJECT, _STT_FUNC = 1, 2
_PF_X = 1


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    file_bytes: int
    memory_bytes: int
    align: int


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    nbytes: int
    link: int
    info: int
    align: int
    entry_bytes: int


class Symbol(NamedTuple):
    """A symbol of a code object: its virtual address and size in bytes."""

    name: str
    address: int
    nbytes: int
    function: bool


@dataclass(frozen=True)
class CodeObject:
    """One code object. ``memory`` is what its PT_LOAD segments hold, from virtual address 0; ``text`` spans
    [``text_start``, ``text_end``) of it."""

    target: Target
    memory: bytes
    text_start: int
    text_end: int
    symbols: tuple[Symbol, ...]

    @cached_property
    def text(self) -> bytes:
        """The bytes of the executable segment; program counters count from its start."""
        return self.memory[self.text_start : self.text_end]

    @cached_property
    def kernels(self) -> Mapping[str, KernelDescriptor]:
        """Kernel name → its descriptor. ObjectError if one lies outside the segments."""
        found = {}
        for symbol in self.symbols:
            if symbol.function or not symbol.name.endswith(".kd"):
                continue
            name = symbol.name.removesuffix(".kd")
            data = self.memory[symbol.address : symbol.address + DESCRIPTOR_BYTES]
            descriptor = read_descriptor(data, name, symbol.address, self.target)
            if not self.text_start <= descriptor.entry < self.text_end or descriptor.entry % 4:
                raise ObjectError(f"kernel {name}: its entry {descriptor.entry:#x} lies outside the text")
            found[name] = descriptor
        return found

    def kernel(self, name: str) -> KernelDescriptor:
        """The descriptor of kernel ``name``. ObjectError if there is none."""
        if name not in self.kernels:
            raise ObjectError(f"the code object has no kernel {name!r}; it has: {', '.join(self.kernels) or 'none'}")
        return self.kernels[name]

    def function_at(self, pc: int) -> Symbol:
        """The function that holds text offset ``pc``; its address is a text offset too. ObjectError if none does."""
        for symbol in self.symbols:
            start = symbol.address - self.text_start
            if symbol.function and start <= pc < start + symbol.nbytes:
                return symbol._replace(address=start)
        raise ObjectError(f"no function of the code object holds text offset {pc:#x}")


def images(data: bytes) -> tuple[bytes, ...]:
    """Every code object in ``data``: a bare one, or those embedded in a library. ObjectError if there is none."""
    found, at = [], data.find(_MAGIC)
    while at >= 0:
        if len(data) >= at + 64 and struct.unpack_from("<H", data, at + 18)[0] == _EM_AMDGPU:
            found.append(data[at : at + _length(data, at)])
        at = data.find(_MAGIC, at + 1)
    if not found:
        raise ObjectError("there is no AMDGPU code object (64-bit ELF for machine 224) in it")
    return tuple(found)


def _length(data: bytes, at: int) -> int:
    """Bytes of the ELF file at ``at``: its section headers come last, unless it is stripped of them."""
    header = _header(data[at : at + 64])
    return max(header["shoff"] + header["shnum"] * 64, header["phoff"] + header["phnum"] * 56)


def read_code_object(image: bytes) -> CodeObject:
    """Read a bare code object. ObjectError, with the reason, if it is damaged or its machine is not simulated."""
    header = _header(image)
    if header["machine"] != _EM_AMDGPU:
        raise ObjectError(f"not an AMDGPU code object: ELF machine {header['machine']}, not {_EM_AMDGPU}")
    target = target_of(header["flags"])
    try:
        segments = [
            _Segment(*struct.unpack_from("<IIQQQQQQ", image, header["phoff"] + 56 * i)) for i in range(header["phnum"])
        ]
        sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", image, header["shoff"] + 64 * i))
            for i in range(header["shnum"])
        ]
        memory = _load(image, segments)
        executable = [s for s in segments if s.kind == _PT_LOAD and s.flags & _PF_X]
        if len(executable) != 1:
            raise ObjectError(f"a code object has one executable segment, this one {len(executable)}")
        text = executable[0]
        symbols = _symbols(image, sections)
    except (struct.error, OverflowError, ValueError) as error:
        raise ObjectError(f"the code object is cut off: {error}") from error
    for symbol in symbols:
        if symbol.address + symbol.nbytes > len(memory):
            raise ObjectError(f"symbol {symbol.name} lies outside the code object's segments")
    return CodeObject(target, memory, text.address, text.address + text.file_bytes, symbols)


def _header(image: bytes) -> dict[str, int]:
    if not image.startswith(_MAGIC):
        raise ObjectError("not a 64-bit little-endian ELF file")
    if len(image) < 64:
        raise ObjectError(f"the ELF header is cut off: {len(image)} bytes")
    fields = struct.unpack_from("<HHIQQQIHHHHHH", image, 16)
    names = [
        "type",
        "machine",
        "version",
        "entry",
        "phoff",
        "shoff",
        "flags",
        "ehsize",
        "phentsize",
        "phnum",
        "shentsize",
        "shnum",
        "shstrndx",
    ]
    header = dict(zip(names, fields, strict=True))
    if header["phentsize"] not in (0, 56) or header["shentsize"] not in (0, 64):
        raise ObjectError("the ELF header's table entries have unknown sizes")
    return header


def _load(image: bytes, segments: list[_Segment]) -> bytes:
    loads = [segment for segment in segments if segment.kind == _PT_LOAD]
    if not loads:
        raise ObjectError("the code object has no segments to load")
    nbytes = max(segment.address + segment.memory_bytes for segment in loads)
    if nbytes > 1 << 30:
        raise ObjectError(f"the code object's segments span {nbytes} bytes")
    memory = bytearray(nbytes)
    for segment in loads:
        data = image[segment.offset : segment.offset + segment.file_bytes]
        if len(data) != segment.file_bytes or segment.file_bytes > segment.memory_bytes:
            raise ObjectError(f"the segment at {segment.address:#x} is cut off")
        memory[segment.address : segment.address + len(data)] = data
    return bytes(memory)


def _symbols(image: bytes, sections: list[_Section]) -> tuple[Symbol, ...]:
    """Functions and objects of the full symbol table, or of the dynamic one where that is all there is."""
    tables = [s for s in sections if s.kind == _SHT_SYMTAB] or [s for s in sections if s.kind == _SHT_DYNSYM]
    found: dict[str, Symbol] = {}
    for table in tables:
        if table.link >= len(sections):
            raise ObjectError("a symbol table without its strings")
        strings = image[sections[table.link].offset :][: sections[table.link].nbytes]
        for at in range(table.offset, table.offset + table.nbytes, 24):
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", image, at)
            if section and info & 15 in (_STT_OBJECT, _STT_FUNC) and name < len(strings):
                text = strings[name : strings.index(b"\0", name)].decode("utf-8", "replace")
                found[text] = Symbol(text, value, size, info & 15 == _STT_FUNC)
    return tuple(found.values())

"""AMDGPU code objects: finding them in a library, segments, symbols, kernels (LLVM, AMDGPUUsage, "Code Object")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, NamedTuple

from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection
from elftools.elf.segments import NoteSegment, Segment

from kernelwright.simulator.code.arguments import METADATA_NOTE, Arguments, read_arguments
from kernelwright.simulator.code.descriptor import DESCRIPTOR_BYTES, KernelDescriptor, read_descriptor
from kernelwright.simulator.code.target import Target, target_of
from kernelwright.simulator.errors import ObjectError, SimulatorError

_MAGIC = b"\x7fELF\x02\x01"  # ELF, 64 bits, little endian
_HEADER_BYTES, _SEGMENT_BYTES, _SECTION_BYTES = 64, 56, 64
_MOST_MEMORY = 1 << 30  # bytes that the segments of a code object may span


class Symbol(NamedTuple):
    """A symbol of a code object: its virtual address and size in bytes."""

    name: str
    address: int
    nbytes: int
    function: bool


@dataclass(frozen=True)
class CodeObject:
    """One code object. ``memory`` is what its PT_LOAD segments hold, from virtual address 0; ``text`` spans
    [``text_start``, ``text_end``) of it. ``arguments`` has an entry for each kernel with metadata.
    """

    target: Target
    memory: bytes
    text_start: int
    text_end: int
    symbols: tuple[Symbol, ...]
    arguments: Mapping[str, Arguments]

    @cached_property
    def text(self) -> bytes:
        """The bytes of the executable segment; program counters count from its start."""
        return self.memory[self.text_start : self.text_end]

    @cached_property
    def kernels(self) -> Mapping[str, KernelDescriptor]:
        """Kernel name → its descriptor. Raises ObjectError if one lies outside the segments."""
        descriptors = {}
        for symbol in self.symbols:
            if symbol.function or not symbol.name.endswith(".kd"):
                continue
            name = symbol.name.removesuffix(".kd")
            data = self.memory[symbol.address : symbol.address + DESCRIPTOR_BYTES]
            descriptor = read_descriptor(data, name, symbol.address, self.target)
            if not self.text_start <= descriptor.entry < self.text_end or descriptor.entry % 4:
                raise ObjectError(f"kernel {name}: its entry {descriptor.entry:#x} lies outside the text")
            descriptors[name] = descriptor
        return descriptors

    def kernel(self, name: str) -> KernelDescriptor:
        """The descriptor of kernel ``name``. Raises ObjectError if there is none."""
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
    objects, at = [], data.find(_MAGIC)
    while at >= 0:
        header = data[at : at + _HEADER_BYTES]
        if len(header) == _HEADER_BYTES:
            elf = _open(header)
            if elf["e_machine"] == "EM_AMDGPU":
                objects.append(data[at : at + _length(elf)])
        at = data.find(_MAGIC, at + 1)
    if not objects:
        raise ObjectError("there is no AMDGPU code object (64-bit ELF for machine 224) in it")
    return tuple(objects)


def _length(elf: ELFFile) -> int:
    """Size of an ELF file from its header: the section headers come last, unless it is stripped of them."""
    _check_entry_sizes(elf)
    sections = elf["e_shoff"] + elf["e_shnum"] * _SECTION_BYTES
    segments = elf["e_phoff"] + elf["e_phnum"] * _SEGMENT_BYTES
    return int(max(sections, segments))


def read_code_object(image: bytes, arch: str | None = None) -> CodeObject:
    """Read a bare code object. ObjectError, with the reason, if it is damaged or its machine is not simulated.

    ``arch`` selects the architecture if several have its machine.
    """
    elf = _open(image)
    _check_entry_sizes(elf)
    if elf["e_machine"] != "EM_AMDGPU":
        raise ObjectError(f"not an AMDGPU code object: ELF machine {elf['e_machine']}, not EM_AMDGPU")
    target = target_of(elf["e_flags"], arch)
    with _damage_as_object_errors():
        loads = list(elf.iter_segments("PT_LOAD"))
        memory = _load(loads)
        executable = [segment for segment in loads if segment["p_flags"] & P_FLAGS.PF_X]
        if len(executable) != 1:
            raise ObjectError(f"a code object has one executable segment, this one {len(executable)}")
        symbols = _symbols(elf)
        arguments = _arguments(elf)
    for symbol in symbols:
        if symbol.address + symbol.nbytes > len(memory):
            raise ObjectError(f"symbol {symbol.name} lies outside the code object's segments")
    start = executable[0]["p_vaddr"]
    return CodeObject(target, memory, start, start + executable[0]["p_filesz"], symbols, arguments)


@contextmanager
def _damage_as_object_errors() -> Iterator[None]:
    """Raise ObjectError for whatever pyelftools raises: on damaged tables that is any error, not ELFError alone."""
    try:
        yield
    except SimulatorError:
        raise
    except Exception as error:
        raise ObjectError(f"the code object is cut off or damaged: {error}") from error


def _open(image: bytes) -> ELFFile:
    if not image.startswith(_MAGIC):
        raise ObjectError("not a 64-bit little-endian ELF file")
    if len(image) < _HEADER_BYTES:
        raise ObjectError(f"the ELF header is cut off: {len(image)} bytes")
    with _damage_as_object_errors():
        return ELFFile(BytesIO(image))


def _check_entry_sizes(elf: ELFFile) -> None:
    """Refuse other entry sizes: with entries of 0 bytes, a small damaged file could claim billions of them."""
    segments = elf["e_phnum"] == 0 or elf["e_phentsize"] == _SEGMENT_BYTES
    sections = elf["e_shoff"] == 0 or elf["e_shentsize"] == _SECTION_BYTES
    if not segments or not sections:
        raise ObjectError("the ELF header's table entries have unknown sizes")


def _load(segments: Sequence[Segment]) -> bytes:
    """The contents of the segments, from virtual address 0 on."""
    if not segments:
        raise ObjectError("the code object has no segments to load")
    nbytes = max(segment["p_vaddr"] + segment["p_memsz"] for segment in segments)
    if nbytes > _MOST_MEMORY:
        raise ObjectError(f"the code object's segments span {nbytes} bytes; at most {_MOST_MEMORY} are loaded")
    memory = bytearray(nbytes)
    for segment in segments:
        data = segment.data()
        if len(data) != segment["p_filesz"] or segment["p_filesz"] > segment["p_memsz"]:
            raise ObjectError(f"the segment at {segment['p_vaddr']:#x} is cut off")
        memory[segment["p_vaddr"] : segment["p_vaddr"] + len(data)] = data
    return bytes(memory)


def _symbols(elf: ELFFile) -> tuple[Symbol, ...]:
    """Functions and objects of the full symbol table, or of the dynamic one if there is no other."""
    sections = list(elf.iter_sections())
    by_name: dict[str, Symbol] = {}
    for table in _of_type(sections, "SHT_SYMTAB") or _of_type(sections, "SHT_DYNSYM"):
        for symbol in table.iter_symbols():
            kind = symbol["st_info"]["type"]
            named = symbol["st_name"] < table.stringtable["sh_size"]
            if named and symbol["st_shndx"] != "SHN_UNDEF" and kind in ("STT_OBJECT", "STT_FUNC"):
                by_name[symbol.name] = Symbol(symbol.name, symbol["st_value"], symbol["st_size"], kind == "STT_FUNC")
    return tuple(by_name.values())


def _arguments(elf: ELFFile) -> dict[str, Arguments]:
    by_kernel: dict[str, Arguments] = {}
    for segment in elf.iter_segments("PT_NOTE"):
        assert isinstance(segment, NoteSegment)
        for note in segment.iter_notes():
            kind: Any = note["n_type"]  # a number: pyelftools has no name for it
            if note["n_name"] == "AMDGPU" and kind == METADATA_NOTE:
                by_kernel.update(read_arguments(note["n_descdata"]))
    return by_kernel


def _of_type(sections: Sequence[Section], kind: str) -> list[SymbolTableSection]:
    return [section for section in sections if isinstance(section, SymbolTableSection) and section["sh_type"] == kind]

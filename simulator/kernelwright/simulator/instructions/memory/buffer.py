"""Buffer loads and stores (MUBUF, VBUFFER), also straight to LDS, through a resource descriptor (V#).

Range check, per dword (LLVM, AMDGPUUsage, "Relaxed buffer OOB mode"; ISA guides, "Range checking"): a dword whose
offset is out of range loads 0 and is not stored. CDNA: out of range if offset >= num_records - soffset. RDNA: out of
range if offset + size > num_records; there the documents differ on whether soffset counts, so cases in which it would
matter are refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.memory.lds import lds_place
from kernelwright.simulator.instructions.memory.scratch import load_private, store_private
from kernelwright.simulator.instructions.memory.transfer import (
    LOADS,
    STORES,
    Transfer,
    extend,
    lanes_of,
    put,
    reader,
    writer,
)
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import row_of, scalar_word
from kernelwright.simulator.machine.scratch import BUFFER
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import STEPS, Words, any_bits, take_wide

Offsets = NDArray[np.int64]


class Resource:
    """The buffer of a static instruction that moves ``nbytes`` per lane.

    ``offsets`` and ``base`` read the V# of a wave. A structured buffer (``idxen`` and a stride) is checked by index; an
    access beyond its own record is refused, because the documents differ on it, and so is swizzling.
    """

    def __init__(self, instruction: Instruction, target: Target, nbytes: int) -> None:
        if instruction.get("tfe"):
            raise Unmodelled(f"{instruction.name}: tfe")
        self.cdna = target.cdna
        self.nbytes = nbytes
        self.first = instruction.operands["srsrc"].index
        self.soffset = scalar_word(instruction.operands["soffset"])
        self.offset = instruction.get("ioffset", instruction.get("offset"))
        row, self.indexed = instruction.operands["vaddr"].index, bool(instruction.get("idxen"))
        self.index = row
        self.vaddr = row + self.indexed if instruction.get("offen") else None
        if instruction.get("ioffset") >> 23:
            raise Unmodelled(f"{instruction.name}: a negative instruction offset")

    def offsets(self, wave: Wave) -> Offsets:
        """Byte offsets of the active lanes, without the scalar offset."""
        if self.vaddr is None:
            offsets = np.full(wave.lanes if wave.full else wave.exec.bit_count(), self.offset, np.int64)
        else:
            offsets = lanes_of(wave, self.vaddr).astype(np.int64)
            if self.offset:
                offsets += self.offset
        stride = wave.s[self.first + 1] >> 16 & 0x3FFF if self.indexed else 0
        if stride:
            if int(offsets.max()) + self.nbytes > stride:
                raise Unmodelled(f"a structured buffer access that reaches behind its record of {stride} bytes")
            offsets += lanes_of(wave, self.index).astype(np.int64) * stride
        return offsets

    def base(self, wave: Wave) -> tuple[int, int, int]:
        """Base address, size in bytes, and scalar offset. Unmodelled for a V# of another kind."""
        low, high, records, word = wave.s[self.first : self.first + 4]
        stride = high >> 16 & 0x3FFF if self.indexed else 0
        if self.cdna:  # type 0; no add_tid
            known = not word & 0xC0800000
        else:  # OOB_SELECT: 3 is raw; 0 and 1 check the index
            known = not word & 0xC0800000 and word >> 28 & 3 in ((0, 1) if stride else (3,))
        if high >> 30 or not known:
            raise Unmodelled(f"a buffer descriptor of this kind: {low:#x} {high:#x} {records:#x} {word:#x}")
        base = low | (high & 0xFFFF) << 32
        if stride:
            return base + self.soffset(wave), records * stride, 0
        return base, records, self.soffset(wave)

    def private(self, wave: Wave) -> int | None:
        """If the V# is that of scratch (gfx90a): the offset in it that all lanes share.

        Swizzling makes the dwords of lanes adjacent, so that the scalar offset, which is not swizzled, counts for all
        lanes.
        """
        if wave.s[self.first + 1] != BUFFER[1] or tuple(wave.s[self.first : self.first + 4]) != BUFFER:
            return None
        soffset = self.soffset(wave)
        if self.indexed or soffset % (4 * wave.lanes):
            raise Unmodelled(f"scratch through a buffer with an index or the scalar offset {soffset}")
        return self.offset + soffset // wave.lanes

    def in_range(self, offsets: Offsets, nbytes: int, records: int, soffset: int) -> NDArray[np.bool_]:
        """Which units of ``nbytes`` are in range."""
        if self.cdna:
            return offsets < records - soffset
        inside = offsets + nbytes <= records
        if soffset and (inside != (offsets + (nbytes + soffset) <= records)).any():
            raise Unmodelled("a buffer access that only its scalar offset takes out of range")
        return inside


def _load_names() -> list[str]:
    return [f"buffer_load_{name}" for name in LOADS]


@semantics(*_load_names(), kind="global")
def load(instruction: Instruction, target: Target) -> Step:
    """Load to registers, or to LDS (the ``lds`` flag of gfx9)."""
    kind = LOADS[instruction.name.removeprefix("buffer_load_")]
    resource = Resource(instruction, target, kind.nbytes)
    if instruction.get("lds"):
        return _load_to_lds(instruction, target, resource, kind)
    write = writer(row_of(instruction.operands["vdata"]), kind)
    gather = _gather_dwords if kind.nbytes >= 4 else _gather_small

    def step(wave: Wave) -> None:
        if wave.exec:
            private = resource.private(wave)
            if private is None:
                write(wave, gather(resource, wave, kind))
            else:
                load_private(wave, private, resource.vaddr, kind, write)

    return step


def _gather_dwords(resource: Resource, wave: Wave, kind: Transfer) -> Words:
    """(dwords, active lanes); the fast path requires every lane in range, inside one region, and aligned."""
    base, records, soffset = resource.base(wave)
    offsets, dwords = resource.offsets(wave), kind.dwords
    start = base + soffset
    region = wave.memory.find(start) if start & 3 == 0 else None
    if region is not None:
        bits = int(any_bits(offsets))
        limit = records - soffset - 4 * dwords
        if bits & 3 == 0 and (bits <= limit or int(offsets.max()) <= limit):
            shift = start - region.first
            room = region.words.nbytes - 4 * dwords - shift
            if shift >= 0 and (bits <= room or int(offsets.max()) <= room):
                offsets += shift
                if dwords in region.wide and not (bits | shift) & 4 * dwords - 1:
                    return take_wide(region.wide[dwords], offsets, dwords)
                return region.words.take((offsets >> 2) + STEPS[dwords])
    return _gather_checked(resource, wave, kind, offsets, base, records, soffset)


def _gather_checked(
    resource: Resource, wave: Wave, kind: Transfer, offsets: Offsets, base: int, records: int, soffset: int
) -> Words:
    """Gather dword by dword with the range check; dwords out of range are 0."""
    each = offsets + 4 * STEPS[kind.dwords]
    inside = resource.in_range(each, 4, records, soffset)
    addresses = each.view(np.uint64) + np.uint64(base + soffset)
    if inside.all():
        return wave.memory.load(wave, addresses[0], kind.dwords)
    words = np.zeros(each.shape, np.uint32)
    if inside.any():
        words[inside] = wave.memory.load(wave, addresses[inside], 1)[0]
    return words


def _gather_small(resource: Resource, wave: Wave, kind: Transfer) -> Words:
    base, records, soffset = resource.base(wave)
    offsets = resource.offsets(wave)
    inside = resource.in_range(offsets, kind.nbytes, records, soffset)
    words = np.zeros(len(offsets), np.uint32)
    if inside.any():
        addresses = offsets[inside].view(np.uint64) + np.uint64(base + soffset)
        words[inside] = wave.memory.load_small(wave, addresses, kind.nbytes)
    return extend(words, kind)


@semantics(*(f"buffer_store_{name}" for name in STORES), kind="global")
def store(instruction: Instruction, target: Target) -> Step:
    """Store from registers."""
    kind = STORES[instruction.name.removeprefix("buffer_store_")]
    resource = Resource(instruction, target, kind.nbytes)
    row = row_of(instruction.operands["vdata"])
    read, unit = reader(row, kind), min(4, kind.nbytes)

    def step(wave: Wave) -> None:
        if not wave.exec:
            return
        private = resource.private(wave)
        if private is not None:
            store_private(wave, private, resource.vaddr, kind, row, read)
            return
        base, records, soffset = resource.base(wave)
        offsets, data = resource.offsets(wave), read(wave)
        if kind.nbytes >= 4 and _scatter(wave, offsets, data, base + soffset, records - soffset):
            return
        start = np.uint64(base + soffset)
        if int(offsets.max()) <= records - soffset - kind.nbytes:
            put(wave.memory, wave, offsets.view(np.uint64) + start, data, kind)
            return
        each = offsets + 4 * STEPS[kind.dwords]
        inside = resource.in_range(each, unit, records, soffset)
        if inside.any():
            put(wave.memory, wave, each[inside].view(np.uint64) + start, data[inside][None], Transfer(unit))

    return step


def _scatter(wave: Wave, offsets: Offsets, data: Words, start: int, span: int) -> bool:
    """Store (dwords, n) if every lane is in range, inside one writable region, and aligned. Returns whether it did."""
    region = wave.memory.find(start) if start & 3 == 0 else None
    if region is None or not region.writable or start < region.first:
        return False
    bits, nbytes, shift = int(any_bits(offsets)), 4 * len(data), start - region.first
    limit = min(span, region.words.nbytes - shift) - nbytes
    if bits & 3 or (bits > limit and int(offsets.max()) > limit):
        return False
    region.words[(offsets + shift >> 2) + STEPS[len(data)]] = data
    return True


def _load_to_lds(instruction: Instruction, target: Target, resource: Resource, kind: Transfer) -> Step:
    """Load to LDS: lane l's data goes to M0 + instruction offset + l * size, whatever its own address.

    LDS_offset is 16 bits of M0 (CDNA3 ISA guide, "LDS-direct loads"); bytes and shorts are extended to a dword.
    """
    if kind.half is not None or (kind.dwords > 1 and target.instructions != "gfx950"):
        raise Unmodelled(f"{instruction.name} to LDS on {target.name}")
    gather = _gather_dwords if kind.nbytes >= 4 else _gather_small
    place = lds_place(instruction.get("offset"), target, kind.dwords)

    def step(wave: Wave) -> None:
        if wave.exec:
            wave.lds.store(wave, place(wave), gather(resource, wave, kind))

    return step

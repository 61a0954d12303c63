"""Atomic instructions on global memory, flat addresses, buffers and LDS.

Lanes act one after the other in ascending order. Floats are added with round to nearest even and denormals kept. The
lane order of real hardware is undefined, so sums that depend on it differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.memory.buffer import Resource
from kernelwright.simulator.instructions.memory.flat import addresses_of, data_row, space_of
from kernelwright.simulator.instructions.memory.lds import one_offset, place
from kernelwright.simulator.instructions.memory.transfer import Transfer, reader, writer
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.machine.operands import row_of
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import Update, Words

# (old, data, second data) → new, each (n,) of the operation's dtype
Combine = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Operation:
    """One atomic: ``dtype`` is the type of its memory, ``operands`` the number of values it takes from registers."""

    dtype: Any
    combine: Combine
    operands: int = 1

    @property
    def dwords(self) -> int:
        """Size of the memory that it changes; packed halves are one dword."""
        return 2 if np.dtype(self.dtype).itemsize == 8 else 1

    def view(self, words: Words) -> Any:
        """(dwords, n) → (n,) of ``dtype``, or (2 n,) for packed halves."""
        if self.dwords == 1:
            return np.ascontiguousarray(words[0]).view(self.dtype)
        return (words[0] | words[1].astype(np.uint64) << np.uint64(32)).view(self.dtype)

    def words(self, values: Any) -> Words:
        """The inverse of :meth:`view`."""
        raw = np.ascontiguousarray(values, self.dtype)
        if self.dwords == 1:
            return raw.view(np.uint32)[None]
        wide = raw.view(np.uint64)
        return np.stack((wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)))

    def update(self, data: list[Words]) -> Update:
        """For data of all active lanes."""

        def apply(old: Words, lanes: Any) -> Words:
            values = [self.view(words[:, lanes]) for words in data]
            return self.words(self.combine(self.view(old), values[0], values[-1]))

        return apply


def _increment(old: Any, data: Any, _: Any) -> Any:
    return np.where(old >= data, 0, old + old.dtype.type(1))


def _decrement(old: Any, data: Any, _: Any) -> Any:
    return np.where((old == 0) | (old > data), data, old - old.dtype.type(1))


_WHOLE: dict[str, Combine] = {
    "add": lambda old, data, _: old + data,
    "sub": lambda old, data, _: old - data,
    "rsub": lambda old, data, _: data - old,
    "inc": _increment,
    "dec": _decrement,
    "sub_clamp": lambda old, data, _: np.where(old < data, 0, old - data),
    "cond_sub": lambda old, data, _: np.where(old >= data, old - data, old),
}
_BITS: dict[str, Combine] = {
    "and": lambda old, data, _: old & data,
    "or": lambda old, data, _: old | data,
    "xor": lambda old, data, _: old ^ data,
    "swap": lambda old, data, _: data,
}
_EXTREMES: dict[str, Combine] = {
    "min": lambda old, data, _: np.where(data < old, data, old),
    "max": lambda old, data, _: np.where(data > old, data, old),
}
_FLOATS: dict[str, Combine] = {
    "add": lambda old, data, _: old + data,
    **_EXTREMES,
    "min_num": lambda old, data, _: np.fmin(old, data),
    "max_num": lambda old, data, _: np.fmax(old, data),
}


def _operations() -> dict[str, Operation]:
    """Operations by their names in gfx11 and later."""
    by_name: dict[str, Operation] = {}
    for bits in (32, 64):
        unsigned, signed, number = f"u{bits // 8}", f"i{bits // 8}", f"f{bits // 8}"
        by_name |= {f"{name}_u{bits}": Operation(unsigned, combine) for name, combine in _WHOLE.items()}
        by_name |= {f"{name}_b{bits}": Operation(unsigned, combine) for name, combine in _BITS.items()}
        for name, combine in _EXTREMES.items():
            by_name |= {f"{name}_u{bits}": Operation(unsigned, combine), f"{name}_i{bits}": Operation(signed, combine)}
        by_name |= {f"{name}_f{bits}": Operation(number, combine) for name, combine in _FLOATS.items()}
        # Data is the new value, followed by the value to compare with.
        equal: Combine = lambda old, new, compared: np.where(old == compared, new, old)  # noqa: E731
        by_name |= {f"cmpswap_b{bits}": Operation(unsigned, equal, 2), f"cmpswap_f{bits}": Operation(number, equal, 2)}
        by_name[f"mskor_b{bits}"] = Operation(unsigned, lambda old, mask, bits: (old & ~mask) | bits, 2)
    add = _WHOLE["add"]
    return by_name | {"pk_add_f16": Operation(np.float16, add), "pk_add_bf16": Operation(ml_dtypes.bfloat16, add)}


OPERATIONS = _operations()
_OLD = {"add": "add_u", "sub": "sub_u", "smin": "min_i", "umin": "min_u", "smax": "max_i", "umax": "max_u"}
_OLD |= {"and": "and_b", "or": "or_b", "xor": "xor_b", "inc": "inc_u", "dec": "dec_u"}
_OLD |= {"swap": "swap_b", "cmpswap": "cmpswap_b"}
# Names after "global_atomic_", "flat_atomic_" and "buffer_atomic_".
GLOBAL = {name: op for name, op in OPERATIONS.items() if not name.startswith(("rsub", "mskor"))}
GLOBAL |= {name: OPERATIONS[f"{new}32"] for name, new in _OLD.items()}
GLOBAL |= {f"{name}_x2": OPERATIONS[f"{new}64"] for name, new in _OLD.items()}
GLOBAL["csub_u32"] = OPERATIONS["sub_clamp_u32"]


def returns(instruction: Instruction) -> bool:
    """Whether a global atomic returns the old contents (sc0, glc or, on gfx12, the temporal hint)."""
    return bool(instruction.get("sc0") or instruction.get("glc") or instruction.get("th") & 1)


def _operands(row: int, operation: Operation) -> list[Callable[[Wave], Words]]:
    kind = Transfer(4 * operation.dwords)
    return [reader(row + position * operation.dwords, kind) for position in range(operation.operands)]


@semantics(*(f"{space}_atomic_{name}" for space in ("global", "flat") for name in GLOBAL), kind="global")
def on_addresses(instruction: Instruction, target: Target) -> Step:
    """Global and flat atomics."""
    operation = GLOBAL[instruction.name.split("_atomic_")[1]]
    where, space = addresses_of(instruction, target), space_of(instruction)
    reads = _operands(data_row(instruction), operation)
    kind = Transfer(4 * operation.dwords)
    write = writer(row_of(instruction.operands["vdst"]), kind) if returns(instruction) else None

    def step(wave: Wave) -> None:
        if wave.exec:
            update = operation.update([read(wave) for read in reads])
            old = space(wave).atomic(wave, where(wave), operation.dwords, update)
            if write is not None:
                write(wave, old)

    return step


@semantics(*(f"buffer_atomic_{name}" for name in GLOBAL), kind="global")
def on_buffer(instruction: Instruction, target: Target) -> Step:
    """Buffer atomics; those out of range do nothing and return 0."""
    operation = GLOBAL[instruction.name.removeprefix("buffer_atomic_")]
    resource = Resource(instruction, target, 4 * operation.dwords)
    row = row_of(instruction.operands["vdata"])
    reads, kind = _operands(row, operation), Transfer(4 * operation.dwords)
    write = writer(row, kind) if returns(instruction) else None

    def step(wave: Wave) -> None:
        if not wave.exec:
            return
        base, records, soffset = resource.base(wave)
        offsets = resource.offsets(wave)
        inside = resource.in_range(offsets, kind.nbytes, records, soffset)
        old = np.zeros((operation.dwords, len(offsets)), np.uint32)
        if inside.any():
            update = operation.update([read(wave)[:, inside] for read in reads])
            addresses = offsets[inside].view(np.uint64) + np.uint64(base + soffset)
            old[:, inside] = wave.memory.atomic(wave, addresses, operation.dwords, update)
        if write is not None:
            write(wave, old)

    return step


def _lds_names() -> dict[str, tuple[Operation, bool, bool]]:
    """Operation, whether it returns, whether its two data operands are swapped (gfx9's cmpst)."""
    plain = {name: (op, False) for name, op in OPERATIONS.items() if not name.startswith(("swap", "cmpswap"))}
    by_name = {f"ds_{name}": (op, False, False) for name, (op, _) in plain.items()}
    by_name |= {f"ds_{'_rtn_'.join(name.rsplit('_', 1))}": (op, True, False) for name, (op, _) in plain.items()}
    for width in ("b32", "b64", "f32", "f64"):
        for old, new, swapped in (("cmpst", "cmpswap", True), ("cmpstore", "cmpswap", False)):
            by_name[f"ds_{old}_{width}"] = (OPERATIONS[f"{new}_{width}"], False, swapped)
            by_name[f"ds_{old}_rtn_{width}"] = (OPERATIONS[f"{new}_{width}"], True, swapped)
    for width in ("b32", "b64"):
        for name in ("wrxchg", "storexchg"):
            by_name[f"ds_{name}_rtn_{width}"] = (OPERATIONS[f"swap_{width}"], True, False)
    return by_name


_LDS = _lds_names()


@semantics(*_LDS, kind="lds")
def on_lds(instruction: Instruction, target: Target) -> Step:
    """DS atomics."""
    operation, returned, swapped = _LDS[instruction.name]
    address, offset = instruction.operands["addr"].index, one_offset(instruction)
    kind = Transfer(4 * operation.dwords)
    names = ["data0", "data1"][: operation.operands]
    reads = [reader(row_of(instruction.operands[name]), kind) for name in (reversed(names) if swapped else names)]
    write = writer(row_of(instruction.operands["vdst"]), kind) if returned else None

    def step(wave: Wave) -> None:
        if wave.exec:
            update = operation.update([read(wave) for read in reads])
            old = wave.lds.atomic(wave, place(wave, address, offset), operation.dwords, update)
            if write is not None:
                write(wave, old)

    return step

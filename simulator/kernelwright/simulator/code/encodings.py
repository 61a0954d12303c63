"""Find the encoding of an instruction in the tinygrad wheel's tables for one family of chips.

Loads only the tables of that family, and tries only the encodings that the highest bits allow: otherwise half of the
time to a kernel's first launch would be spent here.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from kernelwright.simulator.errors import SimulatorError

_VOP3PX2_WORD = 0xD3AC  # bytes 2 and 3 of its first half; the tables do not say so
_VARIANTS = {"_SDWA": 0xF9, "_DPP16": 0xFA}  # source 0 of these encodings
# Special encodings come before those that would match them too, plain ones before _LIT.
_ORDER = {
    "cdna": "VOP3PX2 VOP3P_MFMA VOP3P VOP3SD VOP3_SDST VOP3 DS GLOBAL SCRATCH FLAT MUBUF SMEM SOP1 SOPC SOPP SOPK "
    "SOPK_LIT VOPC_SDWA_SDST VOPC VOP1_DPP16 VOP1_SDWA VOP1 VOP2_DPP16 VOP2_SDWA SOP2 VOP2 VOP2_LIT",
    "rdna3": "VOPD VOP3P VINTERP VOP3SD VOP3_SDST VOP3 DS GLOBAL SCRATCH FLAT SMEM SOP1 SOP1_LIT SOP2 SOP2_LIT SOPC "
    "SOPK SOPK_LIT SOPP VOPC_DPP16 VOPC VOP1_SDST VOP1_DPP16 VOP1 VOP1_LIT VOP2_DPP16 VOP2 VOP2_LIT MUBUF",
    "rdna4": "VOPD VOP3P VINTERP VOP3SD VOP3_SDST VOP3 DS VGLOBAL VSCRATCH VFLAT SMEM SOP1 SOP1_LIT SOPC SOPC_LIT SOPP "
    "SOPK SOPK_LIT VOPC_DPP16 VOPC VOP1_SDST VOP1_DPP16 VOP1 VOP1_LIT SOP2 SOP2_LIT VOP2_DPP16 VOP2 VOP2_LIT VBUFFER",
}


def encoding_of(word: int, tables: str) -> Any:
    """The wheel's class for the instruction that begins with these 64 bits, or None."""
    for pattern in _patterns(tables)[word >> 23 & 0x1FF]:
        if pattern.matches(word):
            return pattern.encoding
    return None


@cache
def encodings(tables: str) -> tuple[Any, ...]:
    """All encodings of a family. SimulatorError without tinygrad."""
    try:
        module = import_module(f"tinygrad.runtime.autogen.amd.{tables}.ins")
    except ImportError as error:
        raise SimulatorError(f"the simulator needs tinygrad ({error}); pip install kernelwright[simulator]") from error
    return tuple(getattr(module, name) for name in _ORDER[tables].split())


class _Pattern:
    """Requirements of an encoding on the first 64 bits: fixed bits, a known opcode, and SDWA or DPP as source 0."""

    def __init__(self, encoding: Any) -> None:
        self.encoding = encoding
        self._mask = self._bits = 0
        self._ops: list[tuple[int, int, frozenset[int]]] = []
        for _, field in encoding._fields:
            if type(field).__name__ == "FixedBitField":
                self._fix(field.mask << field.lo, field.default << field.lo)
            elif hasattr(field, "_enum"):
                ops = field._enum if field.allowed is None else field.allowed
                self._ops.append((field.lo, field.mask, frozenset(int(op.value) for op in ops)))
        for suffix, number in _VARIANTS.items():
            if suffix in encoding.__name__:
                self._fix(0x1FF, number)
        if encoding.__name__ == "VOP3PX2":
            self._fix(0xFFFF0000, _VOP3PX2_WORD << 16)

    def begins(self, top: int) -> bool:
        """Whether ``top`` may be the 9 highest of the first 32 bits."""
        return (top ^ self._bits >> 23) & self._mask >> 23 & 0x1FF == 0

    def matches(self, word: int) -> bool:
        """Whether these are the first 64 bits of an instruction of this encoding."""
        if (word ^ self._bits) & self._mask:
            return False
        return all(word >> lo & mask in ops for lo, mask, ops in self._ops)

    def _fix(self, mask: int, bits: int) -> None:
        self._mask |= mask
        self._bits = self._bits & ~mask | bits


@cache
def _patterns(tables: str) -> tuple[tuple[_Pattern, ...], ...]:
    """Possible encodings of an instruction, by the 9 highest of its first 32 bits."""
    patterns = [_Pattern(encoding) for encoding in encodings(tables)]
    return tuple(tuple(pattern for pattern in patterns if pattern.begins(top)) for top in range(512))

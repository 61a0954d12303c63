"""Single instructions in their real encodings, and waves to run them on; tests decoding along with semantics."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

import kernelwright.simulator.instructions.model  # noqa: F401  (fills the table of semantics)
from kernelwright.simulator.code import decode
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.instructions.semantics import build
from kernelwright.simulator.machine.memory import Region
from kernelwright.simulator.machine.wave import Wave

DENORMALS = 0xF0  # FLOAT_MODE of the kernels: round to nearest even, denormals kept everywhere
_SINGLES = {
    "vcc": 106,
    "exec": 126,
    "dpp8": 233,
    "dpp8fi": 234,
    "sdwa": 249,
    "dpp": 250,
    "vccz": 251,
    "execz": 252,
    "scc": 253,
}
_MARKS = {"SDWA": "sdwa", "DPP16": "dpp", "DPP8": "dpp8"}  # values of src0 if the real source follows
_STRIDES = {"SRsrcField": 4, "SBaseField": 2}  # registers per unit of the field
_PACKED = ("neg", "neg_hi", "clmp", "opsel", "opsel_hi", "opsel_hi2")  # other fields of MFMA occupy these bits
_FLOATS = {0.5: 240, -0.5: 241, 1.0: 242, -1.0: 243, 2.0: 244, -2.0: 245, 4.0: 246, -4.0: 247}


def assemble(target: str, encoding: str, name: str, **fields: Any) -> Instruction:
    """The instruction ``name`` in one of the wheel's encodings, encoded and decoded; see :func:`encode`."""
    return decode.decode_one(encode(target, encoding, name, **fields), TARGETS[target], 0)


def encode(target: str, encoding: str, name: str, **fields: Any) -> bytes:
    """The machine code of the instruction ``name`` in one of the wheel's encodings (``VOP3``, ``VOP2_SDWA``, ``DS``).

    Operands are ``"v3"``, ``"s4"``, ``"vcc"``, …, an int or a float (an inline constant, or else a literal); the other
    fields are numbers, by the wheel's names (``clmp``, ``opsel``, ``offset0``, …).
    """
    module = importlib.import_module(f"tinygrad.runtime.autogen.amd.{TARGETS[target].tables}.ins")
    kind = getattr(module, encoding)
    raw, literal = 0, fields.pop("literal", None)
    marks = [mark for form, mark in _MARKS.items() if form in encoding]
    if marks:
        fields = {"src0": marks[0], **fields}
    for key, field in kind._fields:
        if key == "literal" or (encoding == "VOP3P_MFMA" and key in _PACKED and "mfma" in name):
            continue
        if type(field).__name__ == "FixedBitField":
            value = field.default
        elif key in ("op", "opx", "opy"):
            value = _opcode(field, fields.pop(key, name), target)
        elif hasattr(field, "_valid_range"):
            value, extra = _operand(fields.pop(key, 0 if field._valid_range[0] == 0 else "v0"), TARGETS[target].m0)
            value -= field._valid_range[0]
            literal = extra if extra is not None else literal
        elif type(field).__name__ in _STRIDES:
            value = int(fields.pop(key, "s0")[1:]) // _STRIDES[type(field).__name__]
        else:
            value = fields.pop(key, field.default if isinstance(field.default, int) else 0)
        raw |= (value & field.mask) << field.lo
    if fields:
        raise ValueError(f"{encoding} has no field {', '.join(fields)}")
    size = kind._base_size if "literal" not in dict(kind._fields) else kind._base_size - 4
    return raw.to_bytes(kind._base_size, "little")[:size] + (b"" if literal is None else literal.to_bytes(4, "little"))


def _opcode(field: Any, name: str, target: str) -> int:
    if target == "gfx90a" and name in decode.GFX90A_MFMA.values():
        return next(op for op, known in decode.GFX90A_MFMA.items() if known == name)
    for op in field._enum:
        text = op.name.lower()
        if name in (text, text.removesuffix("_e32"), text.removesuffix("_e64")):
            return int(op.value)
    raise ValueError(f"{field._enum.__name__} has no {name}")


def _operand(value: Any, m0: int) -> tuple[int, int | None]:
    """The number of an operand among the 512 of a source field, and its literal, if any."""
    if isinstance(value, float):
        return (_FLOATS[value], None) if value in _FLOATS else (255, int(np.float32(value).view(np.uint32)))
    if isinstance(value, int):
        if -16 <= value <= 64:
            return (128 + value if value >= 0 else 192 - value), None
        return 255, value & 0xFFFFFFFF
    if value == "m0":
        return m0, None
    if value in _SINGLES:
        return _SINGLES[value], None
    return int(value[1:]) + {"v": 256, "s": 0}[value[0]], None


def make_wave(target: str, *, exec_bits: int | None = None, mode: int = DENORMALS, seed: int = 0) -> Wave:
    """A wave without memory whose VGPRs and SGPRs hold random bits."""
    wave = Wave(TARGETS[target], None, None)  # type: ignore[arg-type]
    random = np.random.default_rng(seed)
    wave.v[...] = random.integers(0, 1 << 32, wave.v.shape, np.uint32)
    wave.s[:] = [int(word) for word in random.integers(0, 1 << 32, len(wave.s), np.uint32)]
    wave.mode = mode
    if exec_bits is not None:
        wave.set_exec(exec_bits & (1 << wave.lanes) - 1)
    return wave


def run(wave: Wave, instruction: Instruction) -> None:
    """Bind and execute one instruction."""
    with np.errstate(all="ignore"):
        build(instruction, wave.target)(wave)


def execute(wave: Wave, encoding: str, name: str, **fields: Any) -> None:
    """Assemble, bind and execute one instruction."""
    run(wave, assemble(wave.target.name, encoding, name, **fields))


def make_region(address: int, data: Any, *, writable: bool = True, name: str = "") -> Region:
    """A copy of an array as memory at an address that is a multiple of 16."""
    raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
    room = np.zeros(raw.size + 16, np.uint8)
    held = room[-room.ctypes.data % 16 :][: raw.size]
    held[:] = raw
    return Region(address, held, writable, name)

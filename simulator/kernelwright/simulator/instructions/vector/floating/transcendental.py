"""Reciprocals, roots, exponentials, logarithms and sines.

Hardware approximates these: LLVM relies on 1 ULP for fp32 and fp16, and refines fp64 results itself. Here they are
computed in float64 and rounded once, so results may differ from hardware's in the last bit; powers of two are exact.
Denormal fp32 inputs and results become zero whatever the mode (LLVM AMDGPUUsage, "llvm.amdgcn.exp2" and
"llvm.amdgcn.log"; LLVM's expansions of division and square root rely on it too).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step, semantics
from kernelwright.simulator.instructions.vector.lanewise import vector
from kernelwright.simulator.instructions.vector.operands import operand_at, sources
from kernelwright.simulator.instructions.vector.results import destination
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES, scalar_word
from kernelwright.simulator.machine.wave import Wave

_MOST_TURNS = 256.0  # beyond it hardware does not reduce the angle


def _turns(wave: Wave, values: Any) -> Any:
    """Angles in revolutions, reduced to one revolution. Unmodelled for an angle that hardware does not reduce."""
    far = np.isfinite(values) & (np.abs(values) > _MOST_TURNS) & wave.mask
    if np.count_nonzero(far):
        raise Unmodelled(f"sine or cosine of more than {_MOST_TURNS:.0f} revolutions")
    return values - np.rint(values)


def _sine(wave: Wave, values: Any) -> Any:
    turns = _turns(wave, values)
    quarter = np.abs(turns) == 0.25
    exact = np.where(turns == 0.5, 0.0, np.where(quarter, 4 * turns, np.sin(2 * np.pi * turns)))
    return np.where(turns == 0, turns, exact)


def _cosine(wave: Wave, values: Any) -> Any:
    turns = np.abs(_turns(wave, values))
    return np.where(turns == 0.25, 0.0, np.cos(2 * np.pi * turns))


Function = Callable[[Wave, Any], Any]
_FUNCTIONS: dict[str, Function] = {
    "rcp": lambda wave, a: 1.0 / a,
    "rsq": lambda wave, a: 1.0 / np.sqrt(a),
    "sqrt": lambda wave, a: np.sqrt(a),
    "exp": lambda wave, a: np.exp2(a),
    "log": lambda wave, a: np.log2(a),
    "sin": _sine,
    "cos": _cosine,
}
NAMES = {f"v_{name}_{kind}": (function, kind) for name, function in _FUNCTIONS.items() for kind in ("f16", "f32")}
NAMES |= {f"v_{name}_f64": (_FUNCTIONS[name], "f64") for name in ("rcp", "rsq", "sqrt")}
NAMES["v_rcp_iflag_f32"] = NAMES["v_rcp_f32"]
"""The vector instructions by name: function and type."""


@vector(*NAMES)
def build_transcendental(instruction: Instruction, target: Target) -> Step:
    """Functions of one float."""
    function, kind = NAMES[instruction.name]
    (source,) = sources(instruction, target, (kind,))
    write = destination(instruction, target, kind)

    if kind == "f32":
        return lambda wave: write(wave, _single(function, wave, source(wave)))
    return lambda wave: write(wave, _rounded(function, wave, source(wave), kind))


def _single(function: Function, wave: Wave, value: Any) -> Any:
    """Evaluate in fp32, without denormals."""
    result = function(wave, modes.flush(value).astype(np.float64))
    return modes.flush(result.astype(np.float32))


def _rounded(function: Function, wave: Wave, value: Any, kind: str) -> Any:
    """Evaluate in fp16 or fp64, with denormals as the mode says."""
    modes.refuse_saturation(wave.mode, kind)
    floats = modes.MODE_OF[kind]
    value = value if floats.keeps_inputs(wave.mode) else modes.flush(value)
    result = function(wave, value.astype(np.float64)).astype(DTYPES[kind])
    return result if floats.keeps_outputs(wave.mode) else modes.flush(result)


_SCALAR = {
    f"v_s_{name}_{kind}": f"v_{name}_{kind}" for name in ("exp", "log", "rcp", "rsq", "sqrt") for kind in ("f16", "f32")
}


@semantics(*_SCALAR, kind="scalar")
def build_scalar_transcendental(instruction: Instruction, target: Target) -> Step:
    """gfx12's functions of a scalar, which use vector arithmetic."""
    if any(instruction.get(field) for field in ("neg", "abs", "omod", "clmp", "opsel")):
        raise Unmodelled(f"{instruction.name}: modifiers")
    function, kind = NAMES[_SCALAR[instruction.name]]
    read, index, single = scalar_word(operand_at(instruction, 0)), instruction.operands["vdst"].index, kind == "f32"
    dtype, bits = DTYPES[kind], np.uint32 if single else np.uint16

    def step(wave: Wave) -> None:
        value = np.array([read(wave) & int(np.iinfo(bits).max)], bits).view(dtype)
        result = _single(function, wave, value) if single else _rounded(function, wave, value, kind)
        wave.write_scalar(index, int(result.view(bits)[0]))

    return step

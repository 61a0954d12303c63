"""Bind instructions that apply one function to their lanes, named in the tables of the other vector modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Builder, Step, semantics
from kernelwright.simulator.instructions.vector.dpp import build_dpp
from kernelwright.simulator.instructions.vector.operands import Source, sources
from kernelwright.simulator.instructions.vector.results import destination, direct
from kernelwright.simulator.machine.wave import Wave

Out = Callable[[Wave], Any]


@dataclass(frozen=True)
class Op:
    """``result = function(*sources)``, or ``then(function(*sources[:-1]), sources[-1])``; both ufuncs run in place.

    ``reverse``: the function takes the sources in the opposite order. ``clamped`` replaces ``function`` if the clamp
    bit is set on an integer result.
    """

    function: Callable[..., Any]
    result: str
    sources: tuple[str, ...]
    then: np.ufunc | None = None
    clamped: Callable[..., Any] | None = None
    reverse: bool = False


def vector(*names: str, kind: str = "vector") -> Callable[[Builder], Builder]:
    """Register a builder of vector instructions, which then also works for DPP encodings."""

    def register(plain: Builder) -> Builder:
        def build(instruction: Instruction, target: Target) -> Step:
            if instruction.encoding.endswith(("DPP16", "DPP8")):
                return build_dpp(instruction, target, plain)
            return plain(instruction, target)

        semantics(*names, kind=kind)(build)
        return plain

    return register


def lanewise(table: Mapping[str, Op], kind: str = "vector") -> None:
    """Register every instruction of a table."""

    @vector(*table, kind=kind)
    def build(instruction: Instruction, target: Target) -> Step:
        return build_lanewise(table[instruction.name], instruction, target)


def build_lanewise(op: Op, instruction: Instruction, target: Target) -> Step:
    """A step that applies the function to all active lanes."""
    inputs = sources(instruction, target, op.sources)
    if op.reverse:
        inputs.reverse()
    if instruction.get("clmp") and op.result not in ("f16", "f32", "f64"):
        return _clamped(op, instruction, target, inputs)
    out = direct(instruction, op.result)
    if out is not None and op.then is not None:
        return _chained(op.function, op.then, out, inputs)
    if out is not None and isinstance(op.function, np.ufunc):
        return bind_in_place(op.function, out, inputs)
    function = op.function if op.then is None else _composed(op.function, op.then)
    return bind(function, inputs, destination(instruction, target, op.result))


def bind(function: Callable[..., Any], inputs: list[Source], write: Callable[[Wave, Any], None]) -> Step:
    """A step that reads, computes and writes."""
    if len(inputs) == 1:
        (only,) = inputs
        return lambda wave: write(wave, function(only(wave)))
    if len(inputs) == 2:
        first, second = inputs
        return lambda wave: write(wave, function(first(wave), second(wave)))
    return lambda wave: write(wave, function(*[source(wave) for source in inputs]))


def _clamped(op: Op, instruction: Instruction, target: Target, inputs: list[Source]) -> Step:
    if op.clamped is None:
        raise Unmodelled(f"{instruction.name}: clamp")
    return bind(op.clamped, inputs, destination(instruction, target, op.result, clamped=True))


def _composed(function: Callable[..., Any], then: np.ufunc) -> Callable[..., Any]:
    return lambda *values: then(function(*values[:-1]), values[-1])


def bind_in_place(function: np.ufunc, out: Out, inputs: list[Source]) -> Step:
    """A step in which the function writes directly to the active lanes of the registers."""
    if len(inputs) == 1:
        (only,) = inputs

        def unary(wave: Wave) -> None:
            if wave.full:
                function(only(wave), out=out(wave))
            else:
                function(only(wave), out=out(wave), where=wave.mask)

        return unary
    first, second = inputs

    def binary(wave: Wave) -> None:
        if wave.full:
            function(first(wave), second(wave), out=out(wave))
        else:
            function(first(wave), second(wave), out=out(wave), where=wave.mask)

    return binary


def _chained(function: Callable[..., Any], then: np.ufunc, out: Out, inputs: list[Source]) -> Step:
    first, second, third = inputs

    def step(wave: Wave) -> None:
        if wave.full:
            then(function(first(wave), second(wave)), third(wave), out=out(wave))
        else:
            then(function(first(wave), second(wave)), third(wave), out=out(wave), where=wave.mask)

    return step

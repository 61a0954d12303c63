"""Comparisons: a bool per lane becomes a lane mask; v_cmpx puts it into EXEC.

Bits of inactive lanes become 0. v_cmpx writes EXEC and, on CDNA, also its scalar destination (CDNA3 and RDNA3 ISA
guides, "Vector compare operations").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import vector
from kernelwright.simulator.instructions.vector.masks import mask_destination
from kernelwright.simulator.instructions.vector.operands import Source, sources
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.operands import DTYPES
from kernelwright.simulator.machine.registers import to_bits
from kernelwright.simulator.machine.wave import Wave

Compare = Callable[[Any, Any], Any]


def _never(a: Any, b: Any) -> Any:
    return np.zeros(np.broadcast(a, b).shape, np.bool_)


def _always(a: Any, b: Any) -> Any:
    return np.ones(np.broadcast(a, b).shape, np.bool_)


def _unordered(a: Any, b: Any) -> Any:
    return np.isnan(a) | np.isnan(b)


def _negated(compare: Compare) -> Compare:
    return lambda a, b: ~compare(a, b)


def _unequal(a: Any, b: Any) -> Any:
    """Ordered and different."""
    return (a < b) | (a > b)


_ORDER: dict[str, Compare] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_INTEGER = _ORDER | {"ne": np.not_equal, "f": _never, "t": _always}
_FLOAT = (
    _ORDER
    | {"lg": _unequal, "neq": np.not_equal, "nlg": _negated(_unequal), "u": _unordered, "o": _negated(_unordered)}
    | {f"n{name}": _negated(_ORDER[name]) for name in ("lt", "le", "gt", "ge")}
    | {"f": _never, "t": _always, "tru": _always}
)
_KINDS = {kind: _INTEGER for kind in ("u16", "i16", "u32", "i32", "u64", "i64")}
_KINDS |= {kind: _FLOAT for kind in ("f16", "f32", "f64")}

# v_cmp_<relation>_<kind> and v_cmpx_…
_NAMES = {
    f"v_{verb}_{relation}_{kind}": (compare, kind)
    for verb in ("cmp", "cmpx")
    for kind, relations in _KINDS.items()
    for relation, compare in relations.items()
}


@vector(*_NAMES)
def build_compare(instruction: Instruction, target: Target) -> Step:
    """A comparison of two sources."""
    compare, kind = _NAMES[instruction.name]
    first, second = [_flushed(source, kind) for source in sources(instruction, target, (kind, kind))]
    return _finish(instruction, target, lambda wave: compare(first(wave), second(wave)))


def _flushed(source: Source, kind: str) -> Source:
    """Flush float inputs as the denormal mode requires."""
    if kind not in modes.MODE_OF:
        return source
    kept = 1 << modes.MODE_OF[kind].denormal_shift

    def read(wave: Wave) -> Any:
        value = source(wave)
        return value if wave.mode & kept else modes.flush(value)

    return read


def _finish(instruction: Instruction, target: Target, test: Callable[[Wave], Any]) -> Step:
    if instruction.get("clmp") or instruction.get("omod"):
        raise Unmodelled(f"{instruction.name}: clamp (signalling) of a comparison")
    if not instruction.name.startswith("v_cmpx"):
        write = mask_destination(instruction)

        def compare(wave: Wave) -> None:
            bits = to_bits(test(wave))
            write(wave, bits if wave.full else bits & wave.exec)

        return compare
    write_also = mask_destination(instruction) if target.cdna else None

    def narrow(wave: Wave) -> None:
        bits = to_bits(test(wave)) & wave.exec
        if write_also is not None:
            write_also(wave, bits)
        wave.set_exec(bits)

    return narrow


# Bits of the second source of v_cmp_class: the float classes that count.
_CLASSES = ("signalling NaN", "quiet NaN", "-inf", "-normal", "-denormal", "-0", "+0", "+denormal", "+normal", "+inf")


def float_class(values: Any) -> Any:
    """Number of the class of each float, as in the mask of v_cmp_class."""
    size = values.dtype.itemsize
    bits = values.view(f"u{size}")
    info = np.finfo(values.dtype)
    negative = np.signbit(values)
    magnitude = np.abs(values)
    rank = np.where(magnitude == 0, 0, np.where(magnitude < info.tiny, 1, np.where(np.isinf(values), 3, 2)))
    quiet = (bits >> bits.dtype.type(info.nmant - 1) & bits.dtype.type(1)).astype(np.int64)
    return np.where(np.isnan(values), quiet, np.where(negative, 5 - rank, 6 + rank))


@vector(*(f"v_{verb}_class_{kind}" for verb in ("cmp", "cmpx") for kind in ("f16", "f32", "f64")))
def build_class(instruction: Instruction, target: Target) -> Step:
    """Whether the first source is in a class whose bit is set in the second. Never flushes denormals."""
    kind = instruction.name[-3:]
    chosen = "u16" if kind == "f16" else "u32"
    value, wanted = sources(instruction, target, (kind, chosen))
    one = DTYPES[chosen](1)
    return _finish(
        instruction,
        target,
        lambda wave: (wanted(wave) >> float_class(value(wave)).astype(DTYPES[chosen]) & one).astype(np.bool_),
    )

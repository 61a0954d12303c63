"""Minima, maxima and medians of floats, with the signs of zeros and the NaNs that each instruction guarantees.

``v_min`` and ``v_max`` (``_num`` on gfx12) prefer a number to a NaN; in IEEE mode a signalling NaN gives a quiet one.
``v_minimum`` and ``v_maximum`` (gfx12, gfx950) give NaN for any NaN. -0 is less than +0. Source: the pseudo code of the
CDNA3 and RDNA4 ISA guides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import Target
from kernelwright.simulator.instructions.semantics import Step
from kernelwright.simulator.instructions.vector.lanewise import vector
from kernelwright.simulator.instructions.vector.operands import sources
from kernelwright.simulator.instructions.vector.results import destination
from kernelwright.simulator.machine import modes
from kernelwright.simulator.machine.wave import Wave

Pick = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Order:
    """Comparison of two floats: functions for the lower and the upper one."""

    lower: Pick
    upper: Pick


def _bits(values: Any) -> Any:
    return values.view(f"u{values.dtype.itemsize}")


def _plain(picked: Any) -> bool:
    """Whether no lane holds a zero or a NaN, which need special care."""
    return bool(np.count_nonzero(np.abs(picked) > 0) == picked.size)


def _with_zeros(a: Any, b: Any, picked: Any, join: np.ufunc) -> Any:
    """Zeros of two signs: their bits joined by AND are +0, by OR -0; other equal numbers have equal bits."""
    return np.where(a == b, join(_bits(a), _bits(b)).view(a.dtype), picked)


def signalling(values: Any) -> Any:
    """Whether each float is a signalling NaN."""
    bits = _bits(values)
    quiet = bits.dtype.type(1 << np.finfo(values.dtype).nmant - 1)
    return np.isnan(values) & (bits & quiet == 0)


def _number(propagating: np.ufunc, numeric: np.ufunc, join: np.ufunc, *, ieee: bool) -> Pick:
    def pick(a: Any, b: Any) -> Any:
        picked = propagating(a, b)
        if _plain(picked):
            return picked
        picked = _with_zeros(a, b, numeric(a, b), join)
        if ieee:
            picked = np.where(signalling(a) | signalling(b), a.dtype.type(np.nan), picked)
        return picked

    return pick


def _propagating(propagating: np.ufunc, join: np.ufunc) -> Pick:
    def pick(a: Any, b: Any) -> Any:
        picked = propagating(a, b)
        return picked if _plain(picked) else _with_zeros(a, b, picked, join)

    return pick


def _numbers(ieee: bool) -> Order:
    return Order(
        _number(np.minimum, np.fmin, np.bitwise_or, ieee=ieee),
        _number(np.maximum, np.fmax, np.bitwise_and, ieee=ieee),
    )


NUMBERS, IEEE_NUMBERS = _numbers(False), _numbers(True)
PROPAGATING = Order(_propagating(np.minimum, np.bitwise_or), _propagating(np.maximum, np.bitwise_and))


def median(order: Order, a: Any, b: Any, c: Any) -> Any:
    """The median of three; the minimum if one is a NaN."""
    most = order.upper(order.upper(a, b), c)
    middle: Any = np.where(most == b, order.upper(a, c), order.upper(a, b))
    middle = np.where(most == a, order.upper(b, c), middle)
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, order.lower(order.lower(a, b), c), middle) if np.count_nonzero(nan) else middle


CHOICES: dict[str, tuple[int, Callable[..., Any]]] = {
    "min": (2, lambda order, a, b: order.lower(a, b)),
    "max": (2, lambda order, a, b: order.upper(a, b)),
    "min3": (3, lambda order, a, b, c: order.lower(order.lower(a, b), c)),
    "max3": (3, lambda order, a, b, c: order.upper(order.upper(a, b), c)),
    "med3": (3, median),
    "minmax": (3, lambda order, a, b, c: order.upper(order.lower(a, b), c)),
    "maxmin": (3, lambda order, a, b, c: order.lower(order.upper(a, b), c)),
}
_SPELLED = {"min": "minimum", "max": "maximum", "minmax": "minimummaximum", "maxmin": "maximumminimum"}
_SPELLED |= {"min3": "minimum3", "max3": "maximum3"}

# name → (choice, kind, does NaN propagate?)
_NAMES: dict[str, tuple[str, str, bool]] = {}
for _kind in ("f16", "f32", "f64"):
    for _choice in CHOICES if _kind != "f64" else ("min", "max"):
        _NAMES[f"v_{_choice}_{_kind}"] = _NAMES[f"v_{_choice}_num_{_kind}"] = (_choice, _kind, False)
        if _choice in _SPELLED:
            _NAMES[f"v_{_SPELLED[_choice]}_{_kind}"] = (_choice, _kind, True)


def order_of(wave: Wave, propagates: bool) -> Order:
    """The order that an instruction follows in the wave's mode; gfx12 has only quiet instructions."""
    if propagates:
        return PROPAGATING
    quiets = wave.target.tables != "rdna4" and modes.ieee(wave.mode, wave.target)
    return IEEE_NUMBERS if quiets else NUMBERS


@vector(*_NAMES)
def build_extreme(instruction: Instruction, target: Target) -> Step:
    """One of two or three floats; denormals are flushed as the mode says."""
    choice, kind, propagates = _NAMES[instruction.name]
    count, choose = CHOICES[choice]
    inputs = sources(instruction, target, (kind,) * count)
    write, usual = destination(instruction, target, kind), modes.MODE_OF[kind].plain

    def step(wave: Wave) -> None:
        values = [source(wave) for source in inputs]
        if wave.mode & usual != usual:
            values = [modes.flush(value) for value in values]
        write(wave, choose(order_of(wave, propagates), *values))

    return step

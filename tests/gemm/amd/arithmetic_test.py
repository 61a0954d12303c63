"""What the compiler makes of ordinary arithmetic, executed.

Divisions, roots, conversions and long integers are sequences of dozens of instructions: one wrong bit would show here.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gemm.amd import compiled
from kernelwright.simulator.code.object_file import read_code_object
from kernelwright.simulator.run.launch import Buffer, Simulator

ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
LANES = 256
TYPES: dict[str, Any] = {
    **{"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16},
    **{"i16": np.int16, "i32": np.int32, "i64": np.int64, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64},
}
Values = Any  # one array


@cache
def code(arch: str) -> tuple[bytes, tuple[str, ...]]:
    """The code object and the names of its kernels."""
    image = compiled.code_object("arithmetic", arch)
    return image, tuple(read_code_object(image).kernels)


def data(kind: str, seed: int) -> Values:
    """Random bits, numbers of moderate size, and the special ones of the type."""
    dtype, count = np.dtype(TYPES[kind.removesuffix("x2")]), LANES * (2 if kind.endswith("x2") else 1)
    random = np.random.default_rng([seed, len(kind)])
    bits = np.frombuffer(random.bytes(count * dtype.itemsize), f"u{dtype.itemsize}").copy()
    if dtype.kind != "f":
        size = 8 * dtype.itemsize
        bits[::3] = random.integers(0, 40, len(bits[::3]))
        ends = np.array([0, 1, (1 << size) - 1, 1 << size - 1, (1 << size - 1) - 1], bits.dtype)
        bits[1::5] = random.choice(ends, len(bits[1::5]))
        return bits.view(dtype)
    info, values = np.finfo(dtype), bits.view(dtype)
    values[::2] = (random.standard_normal(count) * 4).astype(dtype)[::2]
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.inf, -np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max]
    values[1::8] = random.choice(np.array(special, dtype), len(values[1::8]))
    return values


def kinds(name: str) -> tuple[str, str]:
    """(type of the result, type of the operands) of a kernel."""
    between = re.fullmatch(r"(\w+?)_to_(\w+)", name)
    if between:
        source, result = between.groups()
        return ("u16", source) if result == "bf16" else (result, "u16" if source == "bf16" else source)
    verb, kind = name.rsplit("_", 1)
    if verb.startswith("to_"):
        return verb.removeprefix("to_"), kind
    if verb.startswith("from_"):
        return kind, verb.removeprefix("from_")
    if verb in ("less", "unequal"):
        return "i32", kind
    return ("f32" if verb == "mixed" else kind), kind


def launch(arch: str, name: str, operands: list[Values], result: str) -> Values:
    out = np.zeros(LANES * (2 if result.endswith("x2") else 1), TYPES[result.removesuffix("x2")])
    pointers = [array.ctypes.data for array in (out, *operands)]
    buffers = [Buffer(array.ctypes.data, array.nbytes, writable=array is out) for array in (out, *operands)]
    Simulator().launch(
        code(arch)[0],
        name,
        grid=(1, 1, 1),
        block=(LANES, 1, 1),
        arguments=struct.pack("<4Q", *pointers),
        buffers=buffers,
    )
    return out


def fused(a: Values, b: Values, c: Values) -> Values:
    """a * b + c of every lane, rounded once from the exact value."""
    return np.array(
        [_fused(*lane, a.dtype.type) for lane in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)], a.dtype
    )


def _fused(a: float, b: float, c: float, dtype: Any) -> Any:
    if not all(map(math.isfinite, (a, b, c))):
        return dtype(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return dtype(np.float64(a) * np.float64(b) + np.float64(c)) if 0 in (a, b) else dtype(0)
    try:
        near = dtype(float(exact))
    except OverflowError:
        return dtype(math.inf if exact > 0 else -math.inf)
    if not np.isfinite(near):
        return near
    candidates = [x for x in (near, *(np.nextafter(near, dtype(way)) for way in (-np.inf, np.inf))) if np.isfinite(x)]
    return min(candidates, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view(f"u{x.itemsize}")) & 1))


def whole(values: Values, kind: str) -> Values:
    """Truncated, with 0 for what the integer type cannot hold, which C++ leaves open."""
    limits, dtype = np.iinfo(TYPES[kind]), TYPES[kind]
    inside = [math.isfinite(x) and limits.min <= int(x) <= limits.max for x in values.tolist()]
    return np.array([int(x) if ok else 0 for x, ok in zip(values.tolist(), inside, strict=True)], dtype), np.array(
        inside
    )


FLOATS: dict[str, Callable[..., Values]] = {
    "add": lambda a, b, c: a + b,
    "subtract": lambda a, b, c: a - b,
    "multiply": lambda a, b, c: a * b,
    "divide": lambda a, b, c: a / b,
    "fused": lambda a, b, c: fused(a, -b, c),
    "root": lambda a, b, c: np.sqrt(a),
    "floor": lambda a, b, c: np.floor(a),
    "ceil": lambda a, b, c: np.ceil(a),
    "truncate": lambda a, b, c: np.trunc(a),
    "round": lambda a, b, c: np.rint(a),
    "least": lambda a, b, c: np.fmin(a, b),
    "most": lambda a, b, c: np.fmax(a, b),
    "clamped": lambda a, b, c: np.where(a < b, b, np.where(a > c, c, a)),
    "exp2": lambda a, b, c: np.exp2(a.astype(np.float64)).astype(a.dtype),
    "log2": lambda a, b, c: np.log2(a.astype(np.float64)).astype(a.dtype),
    "exp": lambda a, b, c: np.exp(a.astype(np.float64)).astype(a.dtype),
    "log": lambda a, b, c: np.log(a.astype(np.float64)).astype(a.dtype),
    "mixed": lambda a, b, c: fused(a.astype(np.float32), -b.astype(np.float32), c.astype(np.float32)),
}
PAIRS: dict[str, Callable[..., Values]] = {
    "add_f16x2": lambda a, b, c: a + b,
    "fused_f16x2": fused,
    "scaled_f16x2": lambda a, b, c: fused(a, np.full_like(a, 4), np.tile(np.array([2, 0], a.dtype), LANES)),
    "multiply_f32x2": lambda a, b, c: a * b.reshape(-1, 2)[:, ::-1].reshape(-1),
    "fused_f32x2": fused,
    "multiply_i16x2": lambda a, b, c: a * b + c,
    "least_i16x2": lambda a, b, c: np.minimum(a, b),
}


def quotient(a: int, b: int) -> int:
    """Toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def half(a: int) -> int:
    """a / 2, toward zero."""
    return quotient(a, 2)


# Functions of Python ints and the number of bits; signed types take and give signed ones.
INTEGERS: dict[str, Callable[[int, int, int, int], int]] = {
    "add": lambda a, b, c, n: a + b - c,
    "multiply": lambda a, b, c, n: a * b + c,
    "divide_u": lambda a, b, c, n: a // (b | 1),
    "divide_i": lambda a, b, c, n: quotient(half(a), b | 1),
    "remainder_u": lambda a, b, c, n: a % (b | 1),
    "remainder_i": lambda a, b, c, n: half(a) - (b | 1) * quotient(half(a), b | 1),
    "left": lambda a, b, c, n: a << b % n,
    "right": lambda a, b, c, n: a >> b % n,
    "least": lambda a, b, c, n: min(a, b),
    "most": lambda a, b, c, n: max(a, b),
    "saturated_i": lambda a, b, c, n: min(max(a + b, -(1 << n - 1)), (1 << n - 1) - 1),
    "saturated_u": lambda a, b, c, n: max(a - b, 0),
    "reversed": lambda a, b, c, n: int(f"{a:0{n}b}"[::-1], 2),
    "ones": lambda a, b, c, n: a.bit_count(),
    "zeros": lambda a, b, c, n: n - a.bit_length(),
    "selected": lambda a, b, c, n: a & b | ~a & c,
    "parity": lambda a, b, c, n: a ^ b ^ c,
    "high": lambda a, b, c, n: a * b >> n,
    "bytes": lambda a, b, c, n: int.from_bytes(a.to_bytes(4, "little"), "big") ^ b >> 8 & 0xFF00FF,
    "median": lambda a, b, c, n: sorted((a, b, c))[1],
}


def expected(name: str, operands: list[Values], result: str) -> tuple[Values, Values]:
    """(results, where they are defined)."""
    a, b, c = operands
    verb, kind = name.rsplit("_", 1)
    everywhere = np.ones(len(a), np.bool_)
    dtype = TYPES[result.removesuffix("x2")]
    if name in PAIRS:
        return PAIRS[name](a, b, c), everywhere
    if "_to_" in name:
        if name == "bf16_to_f32":
            return (a.astype(np.uint32) << 16).view(np.float32), everywhere
        return (a.astype(ml_dtypes.bfloat16).view(np.uint16) if kind == "bf16" else a.astype(dtype)), everywhere
    if verb.startswith("to_"):
        return whole(a, result)
    if verb.startswith("from_"):  # an integer of 64 bits is rounded once, also to fp16
        return (np.array(list(map(float, a.tolist()))) if dtype is np.float16 else a).astype(dtype), everywhere
    if verb in ("less", "unequal"):
        return (a < b if verb == "less" else a != b).astype(np.int32), everywhere
    if a.dtype.kind == "f":
        return FLOATS[verb](a, b, c), everywhere
    bits = 8 * a.itemsize
    function = INTEGERS.get(verb) or INTEGERS[f"{verb}_{kind[0]}"]
    lanes = [function(*lane, bits) & (1 << bits) - 1 for lane in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    return np.array(lanes, f"u{a.itemsize}").view(dtype), everywhere


def agree(got: Values, wanted: Values, name: str) -> Values:
    """Equal bits but for payloads of NaNs; transcendental functions within a few units in the last place."""
    if name.endswith("_to_bf16"):
        got, wanted = (values.view(ml_dtypes.bfloat16).astype(np.float32) for values in (got, wanted))
    same = got == wanted
    if got.dtype.kind == "f":
        signs = (np.signbit(got) == np.signbit(wanted)) | name.startswith(("least", "most"))
        same = same & signs | np.isnan(got) & np.isnan(wanted)
    if name.startswith(("exp", "log")) or name == "root_f64":
        same |= np.abs(got.astype(np.float64) - wanted) <= 3 * np.spacing(np.abs(wanted)).astype(np.float64)
    return same


@pytest.mark.parametrize("arch", ARCHS)
def test_what_the_compiler_makes_of_arithmetic(arch: str) -> None:
    names = code(arch)[1]
    assert len(names) > 120
    wrong = []
    for name in names:
        result, kind = kinds(name)
        operands = [data(kind, seed) for seed in range(3)]
        got = launch(arch, name, operands, result)
        with np.errstate(all="ignore"):
            wanted, defined = expected(name, operands, result)
            bad = np.flatnonzero(~agree(got, wanted, name) & (defined if len(defined) == len(got) else True))
        wrong += [f"{name}: {len(bad)} of {len(got)}, first: {got[bad[0]]}, not {wanted[bad[0]]}"] if len(bad) else []
    assert not wrong

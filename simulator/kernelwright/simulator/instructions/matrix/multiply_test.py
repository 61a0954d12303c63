"""MFMA and WMMA: every shape and type of every architecture against integers, with the layouts written out again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.simulator.code.matrix_shapes import SHAPES, Shape
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.instructions.matrix.operands import values_of
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import assemble, execute, make_wave, run

A, B, C, D = 0, 32, 64, 128  # first registers
FLOATS: dict[str, Any] = {"f64": np.float64, "f32": np.float32, "xf32": np.float32, "f16": np.float16}
FLOATS |= {"bf16": ml_dtypes.bfloat16}
EIGHTS = {
    ("gfx942", "fp8"): ml_dtypes.float8_e4m3fnuz,
    ("gfx942", "bf8"): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx950", "bf8"): ml_dtypes.float8_e5m2,
    ("gfx1201", "fp8"): ml_dtypes.float8_e4m3fn,
    ("gfx1201", "bf8"): ml_dtypes.float8_e5m2,
}
ALL = [(arch, name) for arch, shapes in SHAPES.items() for name in sorted(shapes)]


def source_place(shape: Shape, block: int, row: int, k: int) -> tuple[int, int]:
    """(lane, element in the lane) of A[row][k], which is also that of B[k][row]."""
    if shape.family == "gfx11":
        return row, k
    if shape.family == "gfx12":
        half = shape.k // 2
        return row + 16 * (k // half), k % half
    groups = 64 // (shape.m * shape.blocks)  # of lanes, one behind the other in k
    width = shape.k // groups
    return row + shape.m * block + shape.m * shape.blocks * (k // width), k % width


def result_place(shape: Shape, block: int, row: int, column: int) -> tuple[int, int]:
    """(register or, for f64, pair; lane) of D[row][column]."""
    if shape.family == "gfx11":
        return row // 2, column + 16 * (row % 2)
    if shape.family == "gfx12":
        return row % 8, column + 16 * (row // 8)
    if shape.accumulator == "f64":
        return (row // 4, column + 16 * (row % 4)) if shape.m == 16 else (0, column + 4 * block + 16 * row)
    if shape.m == 32:
        return 16 * block + 4 * (row // 8) + row % 4, column + 32 * (row // 4 % 2)
    return (4 * block + row % 4, column + 16 * (row // 4)) if shape.m == 16 else (row, column + 4 * block)


def cells(shape: Shape, rows: int, columns: int) -> Iterator[tuple[int, int, int]]:
    yield from itertools.product(range(shape.blocks), range(rows), range(columns))


def encode(values: np.ndarray, kind: str, arch: str) -> np.ndarray:
    """(lanes, elements) numbers → (registers, lanes) words."""
    if kind == "iu4":
        low = values.astype(np.int64).astype(np.uint8) & 15
        raw = low[:, 0::2] | low[:, 1::2] << 4
    elif kind in ("i8", "iu8"):
        raw = values.astype(np.int64).astype(np.uint8)
    else:
        raw = values.astype(EIGHTS[arch, kind] if kind in ("fp8", "bf8") else FLOATS[kind]).view(np.uint8)
    return np.ascontiguousarray(raw).view(np.uint32).T


def load_sources(wave: Wave, shape: Shape, a: np.ndarray, b: np.ndarray, kinds: tuple[str, str]) -> None:
    """a is (blocks, m, k), b is (blocks, k, n)."""
    for first, values, kind in ((A, a, kinds[0]), (B, b.transpose(0, 2, 1), kinds[1])):
        held = np.zeros((wave.lanes, shape.k if shape.family == "gfx11" else shape.per_lane))
        for block, row, k in cells(shape, shape.m, shape.k):
            lane, element = source_place(shape, block, row, k)
            held[lane, element] = values[block, row, k]
        if shape.family == "gfx11":
            held[16:] = held[:16]
        words = encode(held, kind, wave.target.name)
        wave.v[first : first + len(words)] = words


def places(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Register and lane, each (blocks, m, n)."""
    positions = np.array([result_place(shape, *cell) for cell in cells(shape, shape.m, shape.n)])
    return tuple(positions.reshape(shape.blocks, shape.m, shape.n, 2).transpose(3, 0, 1, 2))  # type: ignore[return-value]


def write_accumulator(wave: Wave, shape: Shape, first: int, values: np.ndarray) -> None:
    register, lane = places(shape)
    kind = shape.accumulator
    if kind == "f64":
        words = values.astype(np.float64).view(np.uint64)
        wave.v[first + 2 * register, lane] = words.astype(np.uint32)
        wave.v[first + 2 * register + 1, lane] = words >> 32
    elif kind in ("f16", "bf16"):
        halves = wave.v[first : first + 8].view(np.uint16).reshape(8, 32, 2)
        bits = values.astype(FLOATS[kind]).view(np.uint16)
        if shape.family == "gfx11":
            halves[register, lane, 0] = bits
        else:
            halves[register // 2, lane, register % 2] = bits
    else:
        dtype = np.int32 if kind == "i32" else np.float32
        wave.v[first + register, lane] = values.astype(dtype).view(np.uint32)


def read_accumulator(wave: Wave, shape: Shape, first: int) -> Any:
    register, lane = places(shape)
    kind = shape.accumulator
    if kind == "f64":
        low, high = wave.v[first + 2 * register, lane], wave.v[first + 2 * register + 1, lane]
        return (low | high.astype(np.uint64) << np.uint64(32)).view(np.float64)
    if kind in ("f16", "bf16"):
        halves = wave.v[first : first + 8].view(np.uint16).reshape(8, 32, 2)
        gfx11 = shape.family == "gfx11"
        bits = halves[register, lane, 0] if gfx11 else halves[register // 2, lane, register % 2]
        return bits.view(FLOATS[kind]).astype(np.float64)
    return wave.v[first + register, lane].view(np.int32 if kind == "i32" else np.float32).astype(np.float64)


def encoding_of(shape: Shape) -> str:
    return "VOP3P_MFMA" if shape.family == "mfma" else "VOP3P"


def go(wave: Wave, name: str, shape: Shape, **fields: Any) -> None:
    if shape.accumulator == "i32" and shape.family != "mfma":
        fields = {"neg": 3} | fields
    operands = {"vdst": f"v{D}", "src0": f"v{A}", "src1": f"v{B}", "src2": f"v{C}"}
    execute(wave, encoding_of(shape), name, **(operands | fields))


def integers(random: np.random.Generator, shape: Shape, low: int = -3, high: int = 4) -> tuple[np.ndarray, ...]:
    return tuple(
        random.integers(low, high, size).astype(np.float64)
        for size in (
            (shape.blocks, shape.m, shape.k),
            (shape.blocks, shape.k, shape.n),
            (shape.blocks, shape.m, shape.n),
        )
    )


@pytest.mark.parametrize(("arch", "name"), ALL)
def test_product_of_integers(arch: str, name: str) -> None:
    shape, wave = SHAPES[arch][name], make_wave(arch, exec_bits=5)  # EXEC does not matter
    a, b, c = integers(np.random.default_rng(len(name)), shape)
    load_sources(wave, shape, a, b, (shape.a, shape.b))
    write_accumulator(wave, shape, C, c)
    before = wave.v.copy()
    go(wave, name, shape)
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), a @ b + c)
    wave.v[D : D + shape.result_registers] = before[D : D + shape.result_registers]
    np.testing.assert_array_equal(wave.v, before)


@pytest.mark.parametrize(("arch", "name"), ALL)
def test_one_hot(arch: str, name: str) -> None:
    """One element of A and one of B, of another row each time, meet in one element of D only."""
    shape, wave = SHAPES[arch][name], make_wave(arch)
    random = np.random.default_rng(1)
    a, b, c = (np.zeros_like(values) for values in integers(random, shape))
    k, row, column = random.integers(shape.k), random.permutation(shape.m), random.permutation(shape.n)
    for block in range(shape.blocks):
        a[block, row[block % shape.m], k] = b[block, k, column[block % shape.n]] = 1
    load_sources(wave, shape, a, b, (shape.a, shape.b))
    go(wave, name, shape, src2=0)
    result = read_accumulator(wave, shape, D)
    for block in range(shape.blocks):
        c[block, row[block % shape.m], column[block % shape.n]] = 1
    np.testing.assert_array_equal(result, c)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("cbsz", [1, 2, 4])
def test_broadcast_of_blocks(arch: str, cbsz: int) -> None:
    name = "v_mfma_f32_4x4x4_16b_f16"
    shape, wave = SHAPES[arch][name], make_wave(arch)
    a, b, c = integers(np.random.default_rng(2), shape)
    load_sources(wave, shape, a, b, ("f16", "f16"))
    write_accumulator(wave, shape, C, c)
    abid = (1 << cbsz) - 1
    go(wave, name, shape, cbsz=cbsz, abid=abid)
    chosen = a[(np.arange(16) >> cbsz << cbsz) + abid]
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), chosen @ b + c)


@pytest.mark.parametrize("formats", [(0, 1), (1, 0), (1, 1)])
def test_formats_of_f8f6f4(formats: tuple[int, int]) -> None:
    name = "v_mfma_f32_32x32x64_f8f6f4"
    shape, wave = SHAPES["gfx950"][name], make_wave("gfx950")
    a, b, c = integers(np.random.default_rng(3), shape)
    kinds = {0: "fp8", 1: "bf8"}
    load_sources(wave, shape, a, b, (kinds[formats[0]], kinds[formats[1]]))
    write_accumulator(wave, shape, C, c)
    go(wave, name, shape, cbsz=formats[0], blgp=formats[1])
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), a @ b + c)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_accumulator_registers(arch: str) -> None:
    """A, C and D in AGPRs; the bit that says so is no clamp."""
    name = "v_mfma_i32_16x16x4_4b_i8"
    shape, wave = SHAPES[arch][name], make_wave(arch)
    a, b, c = integers(np.random.default_rng(4), shape)
    load_sources(wave, shape, a, b, ("i8", "i8"))
    c += (1 << 31) - 10
    product = (a @ b + c).astype(np.int64).astype(np.int32)
    assert (product < 0).any()  # wraps
    write_accumulator(wave, shape, C, c)
    wave.v[256 : 256 + D] = wave.v[:D]
    wave.v[: A + 4] = 0
    go(wave, name, shape, acc=1, acc_cd=1)
    np.testing.assert_array_equal(read_accumulator(wave, shape, 256 + D), product)


@pytest.mark.parametrize(("arch", "name"), [x for x in ALL if "iu" in x[1]])
@pytest.mark.parametrize("neg", [0, 1, 2])
def test_signs_and_clamp_of_integers(arch: str, name: str, neg: int) -> None:
    shape, wave = SHAPES[arch][name], make_wave(arch)
    bits = 8 if "iu8" in name else 4
    random = np.random.default_rng(5)
    a, b, _ = integers(random, shape, 0, 1 << bits)
    c = np.where(random.integers(0, 2, (1, 16, 16)), (1 << 31) - 9, -(1 << 31) + 9).astype(np.float64)
    load_sources(wave, shape, a, b, (shape.a, shape.b))
    write_accumulator(wave, shape, C, c)
    a -= (neg & 1) * (a >= 1 << (bits - 1)) * (1 << bits)
    b -= (neg >> 1) * (b >= 1 << (bits - 1)) * (1 << bits)
    total = (a @ b + c).astype(np.int64)
    go(wave, name, shape, neg=neg)
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), total.astype(np.int32))
    go(wave, name, shape, neg=neg, clmp=1)
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), total.clip(-(1 << 31), (1 << 31) - 1))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_upper_halves_on_gfx11(kind: str) -> None:
    name = f"v_wmma_{kind}_16x16x16_{kind}"
    shape, wave = SHAPES["gfx1100"][name], make_wave("gfx1100")
    a, b, c = integers(np.random.default_rng(6), shape)
    load_sources(wave, shape, a, b, (kind, kind))
    write_accumulator(wave, shape, C, c)
    wave.v[C : C + 8] <<= np.uint32(16)
    low = wave.v[D : D + 8] & 0xFFFF
    go(wave, name, shape, opsel=4)
    np.testing.assert_array_equal(wave.v[D : D + 8] & 0xFFFF, low)
    wave.v[D : D + 8] >>= np.uint32(16)
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), a @ b + c)


@pytest.mark.parametrize(("arch", "name"), [x for x in ALL if x[1].startswith(("v_wmma_f16", "v_wmma_bf16"))])
def test_short_accumulators_round_once(arch: str, name: str) -> None:
    shape, wave = SHAPES[arch][name], make_wave(arch)
    random = np.random.default_rng(7)
    dtype = FLOATS[shape.accumulator]
    a, b, c = (values.astype(dtype).astype(np.float64) for values in (random.normal(size=(1, 16, 16)) for _ in "abc"))
    load_sources(wave, shape, a, b, (shape.a, shape.b))
    write_accumulator(wave, shape, C, c)
    go(wave, name, shape)
    exact = a @ b + c
    near = np.abs(read_accumulator(wave, shape, D) - exact)
    spacing = np.abs(np.spacing(exact.astype(dtype)).astype(np.float64))
    assert (near <= spacing * 0.5001).all()


def test_special_values_propagate() -> None:
    name = "v_mfma_f32_32x32x8_f16"
    shape, wave = SHAPES["gfx942"][name], make_wave("gfx942")
    a, b, c = (np.ones_like(values) for values in integers(np.random.default_rng(8), shape))
    a[0, 3, 2], a[0, 5, 1], c[0, 5, 7], a[0, 9, 0] = np.inf, np.inf, -np.inf, np.nan
    load_sources(wave, shape, a, b, ("f16", "f16"))
    write_accumulator(wave, shape, C, c)
    go(wave, name, shape)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(read_accumulator(wave, shape, D), a @ b + c)


def test_lanes_of_gfx11_must_repeat() -> None:
    name = "v_wmma_f32_16x16x16_f16"
    shape, wave = SHAPES["gfx1100"][name], make_wave("gfx1100")
    a, b, _ = integers(np.random.default_rng(9), shape)
    load_sources(wave, shape, a, b, ("f16", "f16"))
    wave.v[B + 2, 20] ^= 1
    with pytest.raises(Trap, match=r"lanes 16-31 of v\[32:39\] do not repeat"):
        go(wave, name, shape)


@pytest.mark.parametrize(
    ("arch", "name", "fields"),
    [
        ("gfx942", "v_mfma_f32_32x32x8_f16", {"blgp": 1}),
        ("gfx942", "v_mfma_f32_32x32x8_f16", {"cbsz": 1}),
        ("gfx950", "v_mfma_f32_32x32x64_f8f6f4", {"cbsz": 4}),
        ("gfx942", "v_mfma_f32_16x16x32_f16", {}),
        ("gfx942", "v_mfma_f32_32x32x64_f8f6f4", {}),
        ("gfx950", "v_smfmac_f32_16x16x64_bf16", {}),
        ("gfx950", "v_mfma_f32_32x32x4_xf32", {}),
        ("gfx90a", "v_mfma_f32_32x32x16_fp8_fp8", {}),
        ("gfx1100", "v_wmma_f32_16x16x16_f16", {"neg": 1}),
        ("gfx1201", "v_wmma_f32_16x16x16_f16", {"opsel": 4}),
    ],
)
def test_what_is_not_modelled_is_refused(arch: str, name: str, fields: dict[str, int]) -> None:
    encoding = "VOP3P" if "wmma" in name else "VOP3P_MFMA"
    operands: dict[str, Any] = {"vdst": f"v{D}", "src0": f"v{A}", "src1": f"v{B}", "src2": f"v{C}"}
    with pytest.raises(Unmodelled):
        run(make_wave(arch), assemble(arch, encoding, name, **(operands | fields)))


def test_xf32_refuses_what_would_be_rounded() -> None:
    name = "v_mfma_f32_32x32x4_xf32"
    wave = make_wave("gfx942")
    wave.v[A : B + 32] = np.float32(1.5).view(np.uint32)
    wave.v[A, 0] += 1
    with pytest.raises(Unmodelled, match="10 bits"):
        go(wave, name, SHAPES["gfx942"][name])


def test_eight_bit_values() -> None:
    """All 256 of each format, where the target has it."""
    for (arch, kind), dtype in EIGHTS.items():
        wanted = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
        np.testing.assert_array_equal(values_of(TARGETS[arch], kind), wanted)
    with pytest.raises(Unmodelled, match="gfx1100"):
        values_of(TARGETS["gfx1100"], "fp8")


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize(("name", "kind"), [("32x32x8_f16", "f16"), ("32x32x8_bf16", "bf16")])
def test_only_gfx90a_flushes_denormals(arch: str, name: str, kind: str) -> None:
    name = f"v_mfma_f32_{name}"
    shape, wave = SHAPES[arch][name], make_wave(arch)
    a, b, c = (np.zeros_like(values) for values in integers(np.random.default_rng(8), shape))
    tiny = {"f16": 2.0**-20, "bf16": 2.0**-130}[kind]
    small = {"f16": 2.0**-10, "bf16": 2.0**-70}[kind]
    a[0, 0, 0], b[0, 0, :] = tiny, 1  # a denormal in A
    a[0, 1, 0] = 1
    b[0, 1, 3], a[0, 2, 1] = -tiny, 1  # in B
    c[0, 3, :], c[0, 4, :] = 2.0**-130, -(2.0**-126)  # in C, and the smallest that is none
    a[0, 5, 2], b[0, 2, 5] = small, small
    c[0, 5, 5] = 2.0**-126 - small * small * (kind == "bf16")
    load_sources(wave, shape, a, b, (kind, kind))
    write_accumulator(wave, shape, C, c)
    go(wave, name, shape)
    exact = a @ b + c
    if arch == "gfx90a":
        flushed = [np.where(np.abs(x) < low, 0, x) for x, low in ((a, tiny * 2), (b, tiny * 2), (c, 2.0**-126))]
        exact = flushed[0] @ flushed[1] + flushed[2]
        exact = np.where(np.abs(exact) < 2.0**-126, 0, exact)
    np.testing.assert_array_equal(read_accumulator(wave, shape, D), exact.astype(np.float32))

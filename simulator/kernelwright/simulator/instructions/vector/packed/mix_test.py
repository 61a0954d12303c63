from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

NAMES = {"gfx942": "v_mad_mix", "gfx1100": "v_fma_mix", "gfx1201": "v_fma_mix"}


def prepared(target: str) -> Wave:
    """v1 and v3 hold fp32, v2 two fp16."""
    wave = make_wave(target, exec_bits=0x7777_7777_7777_7777)
    random = np.random.default_rng(5)
    wave.f[1][...], wave.f[3][...] = random.standard_normal((2, wave.lanes))
    wave.v[2] = random.standard_normal(2 * wave.lanes).astype(np.float16).view(np.uint32)
    return wave


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("high", [0, 1])
def test_operands_of_both_types(target: str, high: int) -> None:
    wave = prepared(target)
    before = wave.v[7].copy()
    fields = {"opsel": high << 1, "opsel_hi": 0b10, "opsel_hi2": 0, "neg": 0b001, "neg_hi": 0b100}
    operands = {"vdst": "v7", "src0": "v1", "src1": "v2", "src2": "v3"}
    execute(wave, "VOP3P", NAMES[target] + "_f32", **operands, **fields)
    single = wave.v[7].copy()
    wave.v[7] = before
    execute(wave, "VOP3P", NAMES[target] + "lo_f16", **operands, **fields)
    low = wave.v[7].copy()
    wave.v[7] = before
    execute(wave, "VOP3P", NAMES[target] + "hi_f16", **operands, **fields)
    for lane in range(wave.lanes):
        a, c = (Fraction(float(wave.f[row][lane])) for row in (1, 3))
        b = Fraction(float(wave.v[2].view(np.float16)[2 * lane + high]))
        exact = np.float32(float(-a * b + abs(c)))
        old = int(before[lane])
        bits = int(exact.astype(np.float16).view(np.uint16))
        wanted = (int(exact.view(np.uint32)), old & 0xFFFF0000 | bits, old & 0xFFFF | bits << 16)
        got = (single[lane], low[lane], wave.v[7][lane])
        assert got == (wanted if wave.mask[lane] else (old, old, old))


def test_flushed_denormals_and_clamp() -> None:
    wave = make_wave("gfx942", mode=0xC0)
    wave.f[1][...], wave.f[2][...] = np.float32(2**-130), 1.0
    fields = {"opsel_hi": 0, "opsel_hi2": 0}
    execute(wave, "VOP3P", "v_mad_mix_f32", vdst="v7", src0="v1", src1="v2", src2=0, **fields)
    assert (wave.f[7] == 0).all()
    wave.f[1][...] = 3.0
    execute(wave, "VOP3P", "v_mad_mix_f32", vdst="v7", src0="v1", src1="v2", src2="v2", clmp=1, **fields)
    assert (wave.f[7] == 1).all()


def test_constants_as_halves_are_refused() -> None:
    with pytest.raises(Unmodelled, match="constant"):
        execute(make_wave("gfx942"), "VOP3P", "v_mad_mix_f32", vdst="v7", src0="v1", src1="v2", src2=1.0)

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave

FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "rcp": (lambda x: 1 / x, 1e-30, 1e30),
    "rsq": (lambda x: 1 / math.sqrt(x), 1e-30, 1e30),
    "sqrt": (math.sqrt, 1e-30, 1e30),
    "exp": (lambda x: 2.0**x, 1e-3, 120.0),
    "log": (math.log2, 1e-30, 1e30),
    "sin": (lambda x: math.sin(2 * math.pi * math.fmod(x, 1)), 1e-3, 255.0),
    "cos": (lambda x: math.cos(2 * math.pi * math.fmod(x, 1)), 1e-3, 255.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_singles_are_within_one_unit_in_the_last_place(name: str) -> None:
    function, least, most = FUNCTIONS[name]
    wave = make_wave("gfx942")
    values = np.geomspace(least, most, 64).astype(np.float32)
    wave.f[1][...] = values
    execute(wave, "VOP1", f"v_{name}_f32", vdst="v2", src0="v1")
    wanted = np.array([function(float(value)) for value in values])
    unit = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
    slack = 1e-14 if name in ("sin", "cos") else 0  # of the reference, near zeros
    assert (np.abs(wave.f[2] - wanted) <= 0.501 * unit + slack).all()


def test_special_values() -> None:
    inf, nan = math.inf, math.nan
    cases = {
        "rcp": [(0.0, inf), (-0.0, -inf), (inf, 0.0), (-inf, -0.0), (nan, nan), (2.0, 0.5)],
        "rsq": [(0.0, inf), (-1.0, nan), (inf, 0.0), (4.0, 0.5)],
        "sqrt": [(0.0, 0.0), (-0.0, -0.0), (-1.0, nan), (inf, inf), (9.0, 3.0)],
        "exp": [(-inf, 0.0), (inf, inf), (nan, nan), (0.0, 1.0), (-5.0, 0.03125), (128.0, inf), (10.0, 1024.0)],
        "log": [(0.0, -inf), (-1.0, nan), (1.0, 0.0), (8.0, 3.0), (inf, inf)],
        "sin": [(0.0, 0.0), (-0.0, -0.0), (0.25, 1.0), (0.5, 0.0), (0.75, -1.0), (inf, nan), (7.25, 1.0)],
        "cos": [(0.0, 1.0), (0.25, 0.0), (0.5, -1.0), (0.75, 0.0), (nan, nan), (256.0, 1.0)],
    }
    for name, pairs in cases.items():
        for kind, row in (("f32", np.float32), ("f16", np.float16)):
            wave = make_wave("gfx1201")
            values = np.zeros(32, row)
            values[: len(pairs)] = [value for value, _ in pairs]
            wave.v[1] = values.view(f"u{values.itemsize}")
            execute(wave, "VOP1", f"v_{name}_{kind}", vdst="v2", src0="v1")
            got = wave.v[2].view(row)[:: 4 // values.itemsize][: len(pairs)]
            np.testing.assert_array_equal(got, np.array([wanted for _, wanted in pairs], row), err_msg=f"{name}_{kind}")


def test_denormals_of_singles_vanish_in_every_mode() -> None:
    wave = make_wave("gfx942", mode=0xF0)
    wave.f[1][...] = np.float32(2**-130)
    execute(wave, "VOP1", "v_rcp_f32", vdst="v2", src0="v1")
    assert np.isposinf(wave.f[2]).all()
    wave.f[1][...] = -130.0
    execute(wave, "VOP1", "v_exp_f32", vdst="v2", src0="v1")
    assert (wave.f[2] == 0).all()


def test_denormals_of_halves_follow_the_mode() -> None:
    for mode, wanted in ((0xF0, 2.0**-20), (0x30, 0.0)):
        wave = make_wave("gfx942", mode=mode)
        wave.v[1][...] = np.float16(-20).view(np.uint16)
        execute(wave, "VOP1", "v_exp_f16", vdst="v2", src0="v1")
        assert (wave.v[2].view(np.float16)[::2] == wanted).all()


def test_angles_beyond_the_reduction_are_refused_in_active_lanes_only() -> None:
    wave = make_wave("gfx942", exec_bits=1)
    wave.f[1][...] = 300.0
    wave.f[1][0] = 0.25
    execute(wave, "VOP1", "v_sin_f32", vdst="v2", src0="v1")
    assert wave.f[2][0] == 1
    wave.set_exec(3)
    with pytest.raises(Unmodelled, match="revolutions"):
        execute(wave, "VOP1", "v_sin_f32", vdst="v2", src0="v1")


def test_doubles() -> None:
    wave = make_wave("gfx942")
    values = np.geomspace(1e-300, 1e300, 64)
    wave.v[2:4] = values.view(np.uint32).reshape(-1, 2).T
    for name, wanted in (("rcp", 1 / values), ("sqrt", np.sqrt(values)), ("rsq", 1 / np.sqrt(values))):
        execute(wave, "VOP1", f"v_{name}_f64", vdst="v4", src0="v2")
        got = np.ascontiguousarray(wave.v[4:6].T).view(np.float64).reshape(-1)
        np.testing.assert_array_equal(got, wanted)


def test_functions_of_scalars() -> None:
    wave = make_wave("gfx1201", exec_bits=0)
    wave.s[5] = int(np.float32(8).view(np.uint32))
    for name, wanted in (("exp", 256.0), ("log", 3.0), ("rcp", 0.125)):
        execute(wave, "VOP3_SDST", f"v_s_{name}_f32", vdst="s4", src0="s5")
        assert np.uint32(wave.s[4]).view(np.float32) == wanted
    wave.s[5] = 0xFFFF0000 | int(np.float16(0.25).view(np.uint16))
    execute(wave, "VOP3_SDST", "v_s_rsq_f16", vdst="s4", src0="s5")
    assert wave.s[4] == int(np.float16(2).view(np.uint16))
    with pytest.raises(Unmodelled, match="modifiers"):
        execute(wave, "VOP3_SDST", "v_s_exp_f32", vdst="s4", src0="s5", neg=1)

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.files.arch_files import read
from kernelwright.files.occupancy import limiter, occupancy


def unit_of(arch: str) -> dict[str, Any]:
    unit: dict[str, Any] = read(arch)[0]["compute_unit"]
    return unit


def wave_size(arch: str) -> int:
    return int(read(arch)[0]["wave_size"])


def percent(arch: str, **resources: int) -> dict[str, int]:
    return occupancy({"wave_size": wave_size(arch), **resources}, unit_of(arch))


# What clang 22 prints beside the code of our kernels ("; Occupancy", waves on a SIMD).
@pytest.mark.parametrize(
    ("arch", "vgpr", "lds", "waves"),
    [
        ("gfx942", 145, 16384, 3),
        ("gfx942", 176, 16384, 2),
        ("gfx942", 159, 16384, 3),
        ("gfx942", 16, 0, 8),
        ("gfx942", 18, 4096, 8),
        ("gfx950", 238, 65536, 2),
        ("gfx1201", 168, 16384, 9),
        ("gfx1201", 214, 16384, 7),
        ("gfx1201", 213, 16384, 7),
        ("gfx1201", 179, 16384, 8),
        ("gfx1201", 15, 0, 16),
    ],
)
def test_waves_are_those_that_the_compiler_counts(arch: str, vgpr: int, lds: int, waves: int) -> None:
    estimate = percent(arch, vgpr=vgpr, sgpr=30, lds_bytes=lds, block_size=wave_size(arch) * 4)
    assert estimate["workgroups_per_cu"] == min(waves, (131072 if arch == "gfx1201" else 163840) // max(1, lds))


def test_nvidia_by_hand() -> None:
    # 65536 registers / (168 * 32) = 12 warps; 228 KiB / (230400 + 1024) = 1 block of 12 warps, of 64.
    assert percent("sm_90a", registers=168, shared_bytes=230400, block_size=384) == {
        "workgroups_per_cu": 1,
        "occupancy_percent": 18,
    }
    assert percent("sm_90a", registers=32, shared_bytes=0, block_size=32)["workgroups_per_cu"] == 32
    assert percent("sm_90a", registers=32, shared_bytes=0, block_size=1024)["occupancy_percent"] == 100


@pytest.mark.parametrize(
    ("resources", "limit"),
    [
        ({"vgpr": 16, "lds_bytes": 0, "block_size": 64}, "waves"),
        ({"vgpr": 160, "lds_bytes": 16384, "block_size": 256}, "registers"),
        ({"vgpr": 64, "lds_bytes": 32768, "block_size": 256}, "lds"),
        ({"vgpr": 16, "sgpr": 112, "lds_bytes": 0, "block_size": 256}, "scalar registers"),
    ],
)
def test_what_there_is_least_of_limits(resources: dict[str, int], limit: str) -> None:
    assert limiter({"wave_size": 64, **resources}, unit_of("gfx942")) == limit


@given(
    st.sampled_from(("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90a")),
    st.integers(1, 256),
    st.integers(0, 65536),
    st.integers(1, 32),
)
def test_no_resource_is_given_out_twice(arch: str, vgpr: int, lds: int, waves: int) -> None:
    unit = unit_of(arch)
    block = waves * wave_size(arch)
    estimate = percent(arch, vgpr=vgpr, lds_bytes=lds, block_size=block)
    groups = estimate["workgroups_per_cu"]
    assert 0 <= estimate["occupancy_percent"] <= 100
    assert groups * waves * vgpr <= unit["registers"] * unit["simds"]
    assert groups * (lds + unit.get("lds_reserved", 0)) <= unit["lds_bytes"]
    assert groups * waves <= unit["simds"] * unit["waves_per_simd"]
    more = percent(arch, vgpr=min(256, vgpr + 8), lds_bytes=min(65536, lds + 512), block_size=block)
    assert more["workgroups_per_cu"] <= groups

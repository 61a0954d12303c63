from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from kernelwright.tile_engine.measuring.clocks import cpu_clocks, cuda_clocks


def test_the_highest_clock_of_a_processor_counts(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\ncpu MHz\t\t: 2200.5\nprocessor\t: 1\ncpu MHz\t\t: 3600.123\n")
    assert cpu_clocks(path) == "cpu=3600"
    path.write_text("processor\t: 0\n")
    assert cpu_clocks(path) == cpu_clocks(tmp_path / "none") == ""


class Library:
    """The driver and the management library in one; the second GPU of the one is the first of the other."""

    def __init__(self, **status: int) -> None:
        self.status = status

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal
        return 0

    def cuDeviceGetPCIBusId(self, place: Any, size: int, device: Any) -> int:
        place.value = b"0000:%02x:00.0" % device.value
        return self.status.get("bus", 0)

    def nvmlInit_v2(self) -> int:
        return self.status.get("init", 0)

    def nvmlDeviceGetHandleByPciBusId_v2(self, place: Any, handle: Any) -> int:
        handle._obj.value = 1000 + int(place.value[5:7], 16)
        return 0

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int, mhz: Any) -> int:
        ctypes.cast(ctypes.addressof(mhz._obj), ctypes.POINTER(ctypes.c_uint))[0] = handle.value + 10 * kind
        return self.status.get(f"clock{kind}", 0)


def test_clocks_of_a_gpu_are_those_of_its_place_on_the_bus() -> None:
    made: Any = Library()
    assert cuda_clocks(made, 1, made) == "sm=1011;memory=1021"


@pytest.mark.parametrize(("status", "said"), [({"bus": 1}, ""), ({"init": 9}, ""), ({"clock2": 3}, "sm=1010")])
def test_what_nobody_says_is_left_out(status: dict[str, int], said: str) -> None:
    made: Any = Library(**status)
    assert cuda_clocks(made, 0, made) == said

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from kernelwright.dispatch import Device, DeviceError, DeviceNameError
from kernelwright.dispatch.core import device

V3 = "flags : fpu avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
V4 = V3 + " avx512f avx512bw avx512cd avx512dq avx512vl"


def test_names() -> None:
    assert (Device("cuda").kind, Device("cuda").ordinal, Device("cuda").name) == ("cuda", 0, "cuda:0")
    assert str(Device("hip:12")) == "hip:12"
    assert Device.of("cpu") == Device() and Device.of(Device("cuda:1")).ordinal == 1
    assert Device("cuda:7", arch="sm_90a").archs == ("sm_90a",)
    for name in ("gpu", "cpu:1", "cuda:", "cuda:-1", "", "sim", "sim:"):
        with pytest.raises(DeviceError, match="allowed: 'cpu'"):
            Device(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cdua:0", r"device is 'cdua:0' \(did you mean 'cuda'\?\); allowed: "),
        ("smi:gfx942", r"device is 'smi:gfx942' \(did you mean 'sim'\?\); allowed: "),
        ("sim:gfx94", r"device is 'sim:gfx94' \(did you mean 'gfx942'\?\); simulated architectures: gfx90a, "),
        ("gpu:0", r"device is 'gpu:0'; allowed: "),
        ("", r"device is ''; allowed: "),
    ],
)
def test_a_misspelt_name_gets_a_proposal(name: str, message: str) -> None:
    with pytest.raises(DeviceNameError, match=message):
        Device(name)


def test_another_number_of_compute_units() -> None:
    assert Device("cpu", compute_units=8) != Device("cpu") == Device("cpu", compute_units=0)
    for units in (-1, 1 << 32):
        with pytest.raises(DeviceNameError, match=rf"compute_units is {units}; allowed: 0 to 4294967295"):
            Device("cpu", compute_units=units)


def test_ordinals_are_those_of_the_abi() -> None:
    assert Device("cuda:2147483647").ordinal == 2**31 - 1
    for wrong in ("cuda:-5", "hip:-1", "cpu:-1", "cuda:2147483648", "hip:4294967291"):  # the last is -5 in 32 bits
        with pytest.raises(DeviceNameError, match=f"device is '{wrong}'; allowed: 'cpu', 'cuda:N', 'hip:N'"):
            Device(wrong)


def test_simulated_devices_are_architectures() -> None:
    sim_gpu = Device("sim:gfx1201")
    assert (sim_gpu.kind, sim_gpu.arch, sim_gpu.archs, sim_gpu.name) == ("sim", "gfx1201", ("gfx1201",), "sim:gfx1201")
    assert sim_gpu.simulated and not Device("hip:0").simulated
    assert (sim_gpu.memory, sim_gpu.library_kind) == ("cpu", "hip")
    assert (Device("hip:1").memory, Device("hip:1").library_kind) == ("hip:1", "hip")
    assert [Device(f"sim:{arch}").ordinal for arch in device.simulated_archs()] == [0, 1, 2, 3, 4]
    assert Device("sim:gfx942", arch="gfx942") == Device("sim:gfx942") != Device("sim:gfx950")
    with pytest.raises(DeviceError, match=r"sim:gfx906.*gfx90a, gfx942, gfx950, gfx1100, gfx1201"):
        Device("sim:gfx906")
    with pytest.raises(DeviceError, match="'gfx950'; leave arch out"):
        Device("sim:gfx942", arch="gfx950")


def test_cpu_levels() -> None:
    assert device.cpu_archs(V4) == ("x86_64_v4", "x86_64_v3")
    assert device.cpu_archs(V3) == ("x86_64_v3",)
    with pytest.raises(DeviceError, match=r"lacks .*fma"):
        device.cpu_archs("flags : fpu avx avx2")
    assert Device("cpu").archs[-1] == "x86_64_v3"


def topology(folder: Path, *versions: int) -> Path:
    for index, version in enumerate(versions):
        node = folder / str(index)
        node.mkdir(parents=True)
        (node / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\nvendor_id 4098\n")
    return folder


def test_hip_archs_come_from_the_kernel_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("ROCR_VISIBLE_DEVICES", raising=False)
    nodes = topology(tmp_path / "nodes", 0, 90010, 90402, 90500, 110000, 120001)
    archs = [device.hip_archs(ordinal, nodes)[0] for ordinal in range(5)]
    assert archs == ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3, 1")
    assert device.hip_archs(1, nodes) == ("gfx942",)
    with pytest.raises(DeviceError, match=r"hip:2.*2 AMD GPUs"):
        device.hip_archs(2, nodes)
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "GPU-abc")
    with pytest.raises(DeviceError, match="GPU-abc"):
        device.hip_archs(0, nodes)
    monkeypatch.delenv("ROCR_VISIBLE_DEVICES")
    with pytest.raises(DeviceError, match="0 AMD GPUs"):
        device.hip_archs(0, tmp_path / "nowhere")


class Driver:
    """A CUDA driver with one device of a given compute capability."""

    def __init__(self, major: int, minor: int, init: int = 0, attribute: int = 0) -> None:
        self.values, self.init, self.attribute = {75: major, 76: minor}, init, attribute

    def cuInit(self, _: int) -> int:
        return self.init

    def cuDeviceGet(self, handle: Any, ordinal: int) -> int:
        return 0 if ordinal == 0 else 101

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, _: Any) -> int:
        value._obj.value = self.values[attribute]
        return self.attribute


def test_cuda_archs_come_from_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(driver: Driver) -> None:
        monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)

    use(Driver(9, 0))
    assert Device("cuda:0").archs == ("sm_90a",)
    with pytest.raises(DeviceError, match="below 1"):
        device.cuda_archs(1)
    use(Driver(8, 6))
    assert device.cuda_archs(0) == ("sm_86",)
    use(Driver(9, 0, init=100))
    with pytest.raises(DeviceError, match="cuInit failed with 100"):
        device.cuda_archs(0)
    use(Driver(9, 0, attribute=1))
    with pytest.raises(DeviceError, match="Attribute failed with 1"):
        device.cuda_archs(0)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(DeviceError, match=r"libcuda\.so\.1"):
        Device("cuda:0").archs  # noqa: B018

"""Current clocks of a device, in the format of a table."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

_CPUINFO = Path("/proc/cpuinfo")
# nvmlClockType_t of the NVIDIA Management Library (https://docs.nvidia.com/deploy/nvml-api/).
_NVML_CLOCKS = {"sm": 1, "memory": 2}
_BUS_ID_BYTES = 32
_PCI_DEVICES = Path("/sys/bus/pci/devices")
# Levels of the amdgpu driver, the current one with a star (https://docs.kernel.org/gpu/amdgpu/thermal.html).
_DPM_CLOCKS = {"sm": "pp_dpm_sclk", "memory": "pp_dpm_mclk"}


def cpu_clocks(cpuinfo: Path = _CPUINFO) -> str:
    """``cpu=MHz``, the highest of the processor's cores; empty if the kernel does not report it."""
    try:
        rates = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo.read_text("utf-8"), re.MULTILINE)]
    except OSError:
        return ""
    return f"cpu={round(max(rates))}" if rates else ""


def cuda_clocks(driver: Any, ordinal: int, management: Any = None) -> str:
    """``sm=MHz;memory=MHz`` of a CUDA device; empty if the management library is missing or does not answer.

    ``driver`` is libcuda: the two libraries number devices differently, but agree on the PCI bus address.
    """
    try:
        nvml = management or ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return ""
    place, device, handle = ctypes.create_string_buffer(_BUS_ID_BYTES), ctypes.c_int(), ctypes.c_void_p()
    failed = (
        driver.cuDeviceGet(ctypes.byref(device), ordinal)
        or driver.cuDeviceGetPCIBusId(place, _BUS_ID_BYTES, device)
        or nvml.nvmlInit_v2()
        or nvml.nvmlDeviceGetHandleByPciBusId_v2(place, ctypes.byref(handle))
    )
    if failed:
        return ""
    clocks = []
    for name, kind in _NVML_CLOCKS.items():
        mhz = ctypes.c_uint()
        if not nvml.nvmlDeviceGetClockInfo(handle, kind, ctypes.byref(mhz)):
            clocks.append(f"{name}={mhz.value}")
    return ";".join(clocks)


def hip_clocks(runtime: Any, ordinal: int, devices: Path = _PCI_DEVICES) -> str:
    """``sm=MHz;memory=MHz`` of an AMD GPU, as reported by its kernel driver; empty if it reports none.

    ``runtime`` is libamdhip64, which knows the device's PCI bus address.
    """
    place = ctypes.create_string_buffer(_BUS_ID_BYTES)
    if runtime.hipDeviceGetPCIBusId(place, _BUS_ID_BYTES, ordinal):
        return ""
    clocks = []
    for name, file in _DPM_CLOCKS.items():
        try:
            text = (devices / place.value.decode().lower() / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        clocks += [f"{name}={mhz}" for mhz in re.findall(r"^\d+:\s*(\d+)\s*[Mm][Hh]z\s*\*", text, re.MULTILINE)]
    return ";".join(clocks)

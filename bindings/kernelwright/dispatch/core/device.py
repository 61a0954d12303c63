"""Devices by name, and the architectures whose kernels each device runs, best first."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from kernelwright.dispatch.core.errors import DeviceError, DeviceNameError
from kernelwright.files import arch_files
from kernelwright.files.arch_files import ArchFileError, DeviceFacts
from kernelwright.files.proposals import closest

_NAME = re.compile(r"(cpu)|(cuda|hip)(?::(\d+))?|(sim):(\w+)")
_KINDS = ("cpu", "cuda", "hip", "sim")
_NAMES = "'cpu', 'cuda:N', 'hip:N', 'sim:ARCH'"

_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_POINTER_MEMORY_TYPE, _POINTER_MANAGED, _POINTER_DEVICE = 2, 8, 9  # CU_POINTER_ATTRIBUTE_…
_DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE
_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
_MAX_ORDINAL = 2**31 - 1  # what the C ABI's int32 holds


@dataclass(frozen=True)
class Device:
    """A device by its name: ``cpu``, ``cuda:N``, ``hip:N`` or ``sim:ARCH``.

    Creating one touches no hardware; :attr:`archs` asks the machine, once.

    :ivar name: the name; ``cuda`` and ``hip`` stand for ``cuda:0`` and ``hip:0``.
    :ivar arch: the architecture, if stated: to plan for a GPU that this machine lacks, such as ``Device("hip:0",
        arch="gfx942")``.
    :ivar compute_units: CPUs or compute units to plan for, such as ``Device("cpu", compute_units=8)`` for another
        machine; 0 for the number that the machine or the architecture states. Launches ignore it.
    :ivar features: processor features to plan for, separated by spaces, such as ``"avx512_bf16"``; None for the
        detected ones.
    :ivar kind: ``cpu``, ``cuda``, ``hip`` or ``sim``.
    :ivar ordinal: number of the device among those of its kind.
    :raises DeviceNameError: for any other name, if ``arch`` contradicts a simulated device, or for a number of compute
        units that is negative or has more than 32 bits.

    ``sim:gfx942`` executes the same kernels on the CPU (package ``kernelwright[simulator]``). Its results are
    simulated; its run time says nothing about a GPU.
    """

    name: str = "cpu"
    arch: str | None = None
    compute_units: int = 0
    features: str | None = None
    kind: str = field(init=False)
    ordinal: int = field(init=False)

    def __post_init__(self) -> None:
        """Parse the name."""
        match = _NAME.fullmatch(self.name)
        if match is None:
            raise DeviceNameError(f"device is {self.name!r}{_near(self.name)}; allowed: {_NAMES}")
        if not 0 <= self.compute_units < 1 << 32:
            raise DeviceNameError(f"compute_units is {self.compute_units}; allowed: 0 to {(1 << 32) - 1}")
        kind = match[1] or match[2] or match[4]
        ordinal = int(match[3] or 0)
        if ordinal > _MAX_ORDINAL:
            raise DeviceNameError(f"device is {self.name!r}; allowed: {_NAMES} with N from 0 to {_MAX_ORDINAL}")
        if kind == "sim":
            ordinal = self._simulate(match[5])
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "ordinal", ordinal)
        object.__setattr__(self, "name", f"{kind}:{ordinal}" if kind in ("cuda", "hip") else self.name)

    def _simulate(self, arch: str) -> int:
        """Return the ordinal of a simulated device, whose name gives its architecture."""
        known = simulated_archs()
        if arch not in known:
            near = closest(arch, known)
            raise DeviceNameError(f"device is {self.name!r}{near}; simulated architectures: {', '.join(known)}")
        if self.arch not in (None, arch):
            raise DeviceNameError(f"device is {self.name!r} and arch is {self.arch!r}; leave arch out")
        object.__setattr__(self, "arch", arch)
        return known.index(arch)

    @property
    def simulated(self) -> bool:
        """Whether the simulator executes the kernels instead of a GPU; times are then meaningless."""
        return self.kind == "sim"

    @property
    def memory(self) -> str:
        """The device that holds the arrays: the device itself, or ``cpu`` for a simulated one."""
        return "cpu" if self.simulated else self.name

    @property
    def library_kind(self) -> str:
        """The kind of kernel libraries that the device runs: ``cpu``, ``cuda`` or ``hip``."""
        return "hip" if self.simulated else self.kind

    @classmethod
    def of(cls, device: Device | str) -> Device:
        """Return a device by its name, or the device itself."""
        return device if isinstance(device, Device) else cls(device)

    @cached_property
    def archs(self) -> tuple[str, ...]:
        """Architectures whose kernels the device runs, best first. Raises DeviceError if the device is absent.

        For a CUDA device this loads the driver.
        """
        if self.arch is not None:
            return (self.arch,)
        if self.kind == "cpu":
            return cpu_archs(Path("/proc/cpuinfo").read_text())
        return cuda_archs(self.ordinal) if self.kind == "cuda" else hip_archs(self.ordinal)

    def __str__(self) -> str:
        """The name."""
        return self.name


def _near(name: str) -> str:
    """The proposal for a misspelt kind of device; ``gpu`` is no ``cpu``, so the first letter must be right."""
    kind = name.partition(":")[0]
    return "" if kind in _KINDS else closest(kind, [one for one in _KINDS if one[0] == kind[:1]])


def simulated_archs() -> tuple[str, ...]:
    """Architectures that ``sim:ARCH`` may name, in the order of the stand-in runtime's devices."""
    return tuple(one.name for one in _facts() if one.machine is not None)


def _facts(kind: str = "") -> list[DeviceFacts]:
    """Facts about the architectures of one kind of device; without a kind, about the simulated ones."""
    try:
        return list(arch_files.of_kind(kind) if kind else arch_files.simulated())
    except ArchFileError as error:
        raise DeviceError(str(error)) from None


def cpu_archs(cpuinfo: str) -> tuple[str, ...]:
    """Architectures from the text of /proc/cpuinfo, richest instruction set first.

    DeviceError for a processor that no architecture describes.
    """
    flags: set[str] = set()
    for line in cpuinfo.splitlines():
        if line.startswith("flags"):
            flags = set(line.partition(":")[2].split())
            break
    known = sorted(_facts("cpu"), key=lambda one: -len(one.cpu_flags))
    archs = tuple(one.name for one in known if one.cpu_flags <= flags)
    if not archs:
        least = known[-1]
        lacks = ", ".join(sorted(least.cpu_flags - flags))
        raise DeviceError(f"this CPU lacks {lacks}; kernels need at least {least.name}")
    return archs


def cuda_archs(ordinal: int) -> tuple[str, ...]:
    """Architectures for the device's compute capability, as the CUDA driver reports it; ``sm_86`` if none matches."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceError(f"cuda:{ordinal}: the CUDA driver cannot be loaded: {error}") from error
    if status := driver.cuInit(0):
        raise DeviceError(f"cuda:{ordinal}: cuInit failed with {status}; is a GPU visible?")
    handle, values = ctypes.c_int(), []
    if driver.cuDeviceGet(ctypes.byref(handle), ordinal):
        count = ctypes.c_int()
        driver.cuDeviceGetCount(ctypes.byref(count))
        raise DeviceError(f"cuda:{ordinal}: there is no such device; allowed: below {count.value}")
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        value = ctypes.c_int()
        if status := driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle):
            raise DeviceError(f"cuda:{ordinal}: cuDeviceGetAttribute failed with {status}")
        values.append(value.value)
    archs = tuple(one.name for one in _facts("cuda") if one.compute_capability == tuple(values))
    return archs or ("sm_{}{}".format(*values),)


def cuda_device_of(pointer: int) -> int | None:
    """Ordinal of the CUDA device whose memory holds the address: array libraries do not always report it.

    None without a driver, and for addresses that CUDA did not allocate.
    """
    driver = _cuda_driver()
    if driver is None or pointer == 0:
        return None
    ordinal = ctypes.c_int(-1)
    status = driver.cuPointerGetAttribute(ctypes.byref(ordinal), _POINTER_DEVICE, ctypes.c_uint64(pointer))
    return ordinal.value if status == 0 and ordinal.value >= 0 else None


def cuda_place(pointer: int) -> str | None:
    """Location of an address according to CUDA: ``cuda:N``, ``managed memory``, or ``host memory``, pinned or not.

    None if there is no driver or it is not initialised.
    """
    driver = _cuda_driver()
    if driver is None:
        return None
    attributes = {}
    for attribute in (_POINTER_MEMORY_TYPE, _POINTER_MANAGED):
        value = ctypes.c_uint(0)
        status = driver.cuPointerGetAttribute(ctypes.byref(value), attribute, ctypes.c_uint64(pointer))
        if status not in (0, _INVALID_VALUE):  # such as CUDA_ERROR_NOT_INITIALIZED
            return None
        attributes[attribute] = value.value if status == 0 else 0  # host memory, if CUDA does not know the address
    if attributes[_POINTER_MANAGED]:
        return "managed memory"
    return f"cuda:{cuda_device_of(pointer)}" if attributes[_POINTER_MEMORY_TYPE] == _DEVICE_MEMORY else "host memory"


@cache
def _cuda_driver() -> ctypes.CDLL | None:
    """The CUDA driver, initialised by the owner of the CUDA memory; None if it is not installed."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def hip_archs(ordinal: int, nodes: Path = _KFD_NODES) -> tuple[str, ...]:
    """Architectures for the device's target from the kernel driver's topology; the target itself if none matches.

    Loads no runtime, so forking stays safe.
    """
    versions = []
    for node in sorted(nodes.glob("*"), key=lambda path: int(path.name)) if nodes.is_dir() else ():
        text = (node / "properties").read_text()
        match = re.search(r"^gfx_target_version (\d+)$", text, re.MULTILINE)
        if match and int(match[1]) != 0:  # 0 is a CPU
            versions.append(int(match[1]))
    visible = _visible(versions, os.environ.get("ROCR_VISIBLE_DEVICES"))
    visible = _visible(visible, os.environ.get("HIP_VISIBLE_DEVICES"))
    if ordinal >= len(visible):
        count = f"{len(visible)} AMD GPUs are visible"
        raise DeviceError(f"hip:{ordinal}: there is no such device; {count}; sim:gfx942 and the like need none")
    version = visible[ordinal]
    target = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return tuple(one.name for one in _facts("hip") if one.target == target) or (target,)


def _visible(versions: list[int], setting: str | None) -> list[int]:
    if setting is None:
        return versions
    chosen = [word.strip() for word in setting.split(",") if word.strip()]
    if not all(word.isdigit() for word in chosen):
        raise DeviceError(f"visible devices are {setting!r}; allowed here: ordinals; or pass Device(…, arch=…)")
    return [versions[int(word)] for word in chosen if int(word) < len(versions)]

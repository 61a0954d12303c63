"""The typed form of an architecture file, and the errors that a wrong one raises."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kernelwright.arch.texts import shortened
from kernelwright.files import arch_files
from kernelwright.files.arch_files import ArchFileError

_Section = TypeVar("_Section", bound=BaseModel)


class ArchError(ValueError):
    """An unknown architecture or an architecture file that cannot be used."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("write printable characters in one line")
    return text


_MOST_LINES = 20  # lines of a message
_Word = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=64)]
"""Strings that reach generated sources and command lines."""
_Feature = Annotated[str, Field(pattern=r"^[a-z0-9_][a-z0-9_.-]*$", max_length=64)]
"""A compiler's name for an instruction set, such as ``amx-bf16``."""
_Text = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
"""Text for people, also in manifests."""
_Count = Annotated[int, Field(gt=0, le=2**40)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)


class ComputeUnit(_Frozen):
    """What one compute unit (CU, WGP or SM) holds at once, shared by the workgroups on it.

    ``registers`` is the number per SIMD and lane: a wave of a kernel that uses ``r`` registers takes ``r`` rounded up
    to ``register_granule``. ``lds_bytes`` is allocated in steps of ``lds_granule``, after adding ``lds_reserved`` to
    what a workgroup asks for. None: this resource never runs out first.
    """

    unit: Literal["CU", "WGP", "SM"]
    simds: _Count
    waves_per_simd: _Count
    registers: _Count
    register_granule: _Count
    scalar_registers: _Count | None = None
    scalar_granule: _Count = 1
    lds_bytes: _Count
    lds_granule: _Count
    lds_reserved: int = Field(default=0, ge=0, le=2**40)
    workgroups: _Count | None = None


class CpuFacts(_Frozen):
    """Facts that compilers and kernels for an x86-64 level need.

    ``level`` is the psABI level that a device is checked for, ``flags`` are the names of its instruction sets in
    /proc/cpuinfo, ``vector_lanes`` counts the fp32 lanes of a register, and ``features`` maps instruction sets beyond
    the level to the compiler's names for them.
    """

    level: int = Field(ge=1, le=4)
    flags: tuple[_Word, ...] = Field(min_length=1)
    vector_registers: _Count
    vector_lanes: _Count
    features: dict[_Word, _Feature] = {}


class CudaFacts(_Frozen):
    """How an NVIDIA GPU is recognised: by its compute capability, major and minor."""

    compute_capability: tuple[Annotated[int, Field(ge=1, le=99)], Annotated[int, Field(ge=0, le=9)]]


class AmdGpuFacts(_Frozen):
    """Facts that the simulator needs about an AMD GPU.

    ``machine`` is the EF_AMDGPU_MACH value of its code objects (LLVM, AMDGPUUsage, "AMDGPU Machine"), ``instructions``
    the instruction set that the simulator executes: ``gfx90a``, ``gfx942``, ``gfx950``, ``gfx1100`` or ``gfx1201``.
    """

    machine: int = Field(ge=1, le=0xFF)
    instructions: _Word


class Arch(_Frozen):
    """One architecture: hardware facts, the numbers that selection needs, and the limits of each operation on it.

    ``flops_per_clock_per_cu`` counts dense multiplies and adds separately, by the dtype of A. ``compute_units`` is 0
    where the device must be asked. ``compute_unit`` is None on CPUs and where its capacity is not known; occupancy is
    then unknown. ``fp8_format`` is the encoding of fp8 and bf8. ``lds_transposing_loads``: 16-bit and 8-bit matrices
    are transposed as they are read from LDS. ``wide_direct_lds_loads``: 16 bytes can be loaded from memory straight
    into LDS. ``time_model`` names the formulas that predict times: constants of ``hopper`` were fitted to an H200,
    those of ``cdna3`` and ``cdna4`` to times that AMD published; ``tiles`` is for other GPUs. ``cpu``, ``cuda`` and
    ``amdgpu`` say how devices of one kind are recognised and compiled for; without ``amdgpu``, an AMD GPU is not
    simulated. ``operations`` holds a section for each operation, which the operation reads itself.
    """

    schema_version: Literal[2]
    name: _Word
    backend: _Word
    family: _Word
    target: _Word
    device: _Text
    description: _Text
    sources: tuple[_Text, ...] = Field(min_length=1)
    wave_size: _Count
    compute_units: int = Field(ge=0, lt=2**31)
    clock_ghz: float = Field(gt=0, le=1e6)
    memory_gbytes_per_s: float = Field(gt=0, le=1e9)
    lds_bytes: _Count
    fp8_format: Literal["ocp", "fnuz"] = "ocp"
    lds_transposing_loads: bool = False
    wide_direct_lds_loads: bool = False
    time_model: Literal["tiles", "processors", "hopper", "cdna3", "cdna4"]
    cpu: CpuFacts | None = None
    cuda: CudaFacts | None = None
    amdgpu: AmdGpuFacts | None = None
    compute_unit: ComputeUnit | None = None
    flops_per_clock_per_cu: dict[_Word, Annotated[float, Field(gt=0, le=1e18)]]
    operations: dict[str, dict[str, Any]] = Field(min_length=1)

    def __hash__(self) -> int:
        """Equal architectures have equal names: caches are keyed by architectures."""
        return hash(self.name)

    @functools.cached_property
    def sections(self) -> dict[str, Any]:
        """The sections of ``operations`` read so far, see :meth:`section`."""
        return {}

    def __copy__(self) -> Self:
        """Return a copy that reads its own sections, since ``model_copy`` may change them."""
        made = super().__copy__()
        made.__dict__.pop("sections", None)
        return made

    def section(self, operation: str, model: type[_Section]) -> _Section:
        """The section of an operation as an instance of ``model``, validated with this architecture as the context.

        Each section is read once. Raises ArchError if there is none, or if it is malformed.
        """
        if operation not in self.sections:
            if operation not in self.operations:
                raise ArchError(
                    f"arch {self.name} has no section operations.{operation}; choose another arch, or add it"
                )
            try:
                made = model.model_validate(self.operations[operation], context=self)
            except ValidationError as error:
                raise _malformed(error, f"arch {self.name!r}", ("operations", operation)) from None
            self.sections[operation] = made
        parsed: _Section = self.sections[operation]
        return parsed


def names() -> tuple[str, ...]:
    """Names of the architectures that ship with kernelwright, sorted, then those of ``KERNELWRIGHT_ARCH_PATH``."""
    try:
        return arch_files.names()
    except ArchFileError as error:
        raise ArchError(str(error)) from None


def load(name: str) -> Arch:
    """The architecture called ``name``; ArchError with the known names and the closest match if there is none."""
    if name in _registered:
        return _registered[name]
    if name not in names():
        raise unknown(name, names())
    return _load(name, os.environ.get(arch_files.SETTING))


_registered: dict[str, Arch] = {}


def register(arch: Arch) -> None:
    """Let :func:`load` find an architecture of your own for as long as this process lives.

    ArchError if another architecture has its name.
    """
    if arch.name in names() or _registered.setdefault(arch.name, arch) != arch:
        raise ArchError(f"an arch named {arch.name!r} exists already; choose another name")


@functools.cache
def _load(name: str, setting: object) -> Arch:
    """Load an architecture; ``setting`` says where files are looked for and only distinguishes cache entries."""
    try:
        raw, file = arch_files.read(name)
    except ArchFileError as error:
        raise ArchError(str(error)) from None
    arch = _parse(raw, file)
    if arch.name != name:
        raise ArchError(f"arch file {file!r} has the name {arch.name!r}; call the file {arch.name}.json")
    return arch


def unknown(name: str, known: Sequence[str]) -> ArchError:
    """Return the error for an architecture not among ``known``; it lists them and the closest match."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return ArchError(f"unknown arch {name!r}; known: {', '.join(known)}.{hint}")


def load_file(path: str | Path) -> Arch:
    """Load an architecture from a JSON file of your own (docs/adding_an_arch.md); ArchError if it is unusable."""
    try:
        raw = arch_files.read_own(path)
    except ArchFileError as error:
        raise ArchError(str(error)) from None
    return _parse(raw, str(path))


def _parse(raw: object, origin: str) -> Arch:
    if isinstance(raw, dict) and raw.get("schema_version") == 1:
        raise ArchError(
            f"arch file {origin!r} has schema_version 1; write 2, and move layouts, tile, waves, clusters, pipelines, "
            "warp_tiles, preshuffle_warp_tiles, outputs and feature_needs into operations.gemm"
        )
    try:
        return Arch.model_validate(raw)
    except ValidationError as error:
        raise _malformed(error, f"arch file {origin!r}", ()) from None


def _malformed(error: ValidationError, what: str, outer: tuple[str, ...]) -> ArchError:
    lines = [f"  {'.'.join(map(str, (*outer, *item['loc']))) or '(file)'}: {item['msg']}" for item in error.errors()]
    more = [f"  … and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return ArchError(f"{what} is wrong:\n" + "\n".join([*lines[:_MOST_LINES], *more]))

"""The typed form of an architecture file, and the errors that a wrong one raises."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelwright.arch.texts import parse_json, shortened

_Section = TypeVar("_Section", bound=BaseModel)


class ArchError(ValueError):
    """An unknown architecture or an architecture file that cannot be used."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class ComputeUnit(_Frozen):
    """What one compute unit (CU, WGP or SM) holds at once, shared by the workgroups on it.

    ``registers`` are those of a SIMD for each lane, so a wave of a kernel with ``r`` of them takes ``r`` rounded up to
    ``register_granule``. ``lds_bytes`` are handed out in steps of ``lds_granule``, ``lds_reserved`` more than a
    workgroup asks for. None: never what runs out first.
    """

    unit: Literal["CU", "WGP", "SM"]
    simds: int = Field(gt=0)
    waves_per_simd: int = Field(gt=0)
    registers: int = Field(gt=0)
    register_granule: int = Field(gt=0)
    scalar_registers: int | None = Field(default=None, gt=0)
    scalar_granule: int = Field(default=1, gt=0)
    lds_bytes: int = Field(gt=0)
    lds_granule: int = Field(gt=0)
    lds_reserved: int = Field(default=0, ge=0)
    workgroups: int | None = Field(default=None, gt=0)


class CpuFacts(_Frozen):
    """What compilers and kernels for an x86-64 level must know.

    ``level`` is the psABI level that a device is checked for, ``vector_lanes`` counts the fp32 lanes of a register, and
    ``features`` maps instruction sets beyond the level to the compiler's names for them.
    """

    level: int = Field(ge=1, le=4)
    vector_registers: int = Field(gt=0)
    vector_lanes: int = Field(gt=0)
    features: dict[str, str] = {}


class Arch(_Frozen):
    """One architecture: hardware facts, the numbers that selection needs, and what each operation may look like on it.

    ``flops_per_clock_per_cu`` counts dense multiplies and adds separately, by the dtype of A. ``compute_units`` is 0
    where the device must be asked. ``compute_unit`` is None on CPUs, and where it is not known what one holds; then
    occupancy is unknown. ``fp8_format`` is the encoding of fp8 and bf8. ``lds_transposing_loads``: 16-bit and 8-bit
    matrices are transposed as they are read from LDS. ``wide_direct_lds_loads``: 16 bytes can be loaded from memory
    straight into LDS. ``operations`` holds a section for each operation, which the operation reads itself.
    """

    schema_version: Literal[2]
    name: str = Field(pattern=r"^[a-z0-9_]+$", max_length=64)
    backend: str
    family: str
    target: str
    device: str
    description: str
    sources: tuple[str, ...] = Field(min_length=1)
    wave_size: int = Field(gt=0)
    compute_units: int = Field(ge=0)
    clock_ghz: float = Field(gt=0)
    memory_gbytes_per_s: float = Field(gt=0)
    lds_bytes: int = Field(gt=0)
    fp8_format: Literal["ocp", "fnuz"] = "ocp"
    lds_transposing_loads: bool = False
    wide_direct_lds_loads: bool = False
    cpu: CpuFacts | None = None
    compute_unit: ComputeUnit | None = None
    flops_per_clock_per_cu: dict[str, float]
    operations: dict[str, dict[str, Any]] = Field(min_length=1)

    @functools.cached_property
    def sections(self) -> dict[str, Any]:
        """The sections of ``operations`` that were read so far, see :meth:`section`."""
        return {}

    def __copy__(self) -> Self:
        """A copy reads its sections itself: ``model_copy`` may change them."""
        made = super().__copy__()
        made.__dict__.pop("sections", None)
        return made

    def section(self, operation: str, model: type[_Section]) -> _Section:
        """The section of an operation as its model, which finds this architecture as its validation context.

        It is read once. ArchError if there is none, or if it is malformed.
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
        found: _Section = self.sections[operation]
        return found


@functools.cache
def names() -> tuple[str, ...]:
    """The architectures that ship with kernelwright, sorted."""
    files = importlib.resources.files("kernelwright.arch").joinpath("data").iterdir()
    return tuple(sorted(item.name.removesuffix(".json") for item in files if item.name.endswith(".json")))


def load(name: str) -> Arch:
    """The architecture called ``name``; ArchError with the known names and the closest match otherwise."""
    if name in _registered:
        return _registered[name]
    return _load_shipped(name)


_registered: dict[str, Arch] = {}


def register(arch: Arch) -> None:
    """Let :func:`load` find an architecture of your own for as long as this process lives.

    ArchError if another architecture has its name.
    """
    if arch.name in names() or _registered.setdefault(arch.name, arch) != arch:
        raise ArchError(f"an arch named {arch.name!r} exists already; choose another name")


@functools.cache
def _load_shipped(name: str) -> Arch:
    if name not in names():
        raise unknown(name, names())
    text = importlib.resources.files("kernelwright.arch").joinpath("data", f"{name}.json").read_text("utf-8")
    return _parse(text, f"{name}.json")


def unknown(name: str, known: Sequence[str]) -> ArchError:
    """The error for an architecture that is not among ``known``: lists them and the closest match."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return ArchError(f"unknown arch {name!r}; known: {', '.join(known)}.{hint}")


def load_file(path: str | Path) -> Arch:
    """The architecture that a JSON file of your own describes (docs/adding_an_arch.md); ArchError if it is unusable."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArchError(f"cannot read the arch file {str(path)!r}: {error}") from None
    return _parse(text, str(path))


def _parse(text: str, origin: str) -> Arch:
    try:
        raw = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise ArchError(f"arch file {origin!r} is not JSON: {error}") from None
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
    return ArchError(f"{what} is wrong:\n" + "\n".join(lines))

"""The typed form of an architecture file, and the errors that a wrong one raises."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from kernelwright.arch.choices import Choices, Triple, expand_triples

__all__ = [
    "Arch",
    "ArchError",
    "Choices",
    "ComputeUnit",
    "PipelineLimits",
    "Triple",
    "load",
    "load_file",
    "names",
    "register",
    "unknown",
]

Triples = Annotated[tuple[Triple, ...], BeforeValidator(expand_triples)]
ChoicesField = Annotated[Choices, BeforeValidator(Choices.parse)]


class ArchError(ValueError):
    """An unknown architecture or an architecture file that cannot be used."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class PipelineLimits(_Frozen):
    """What goes together with one pipeline.

    ``lds_bytes`` bounds one stage of A and B (``tile_m * tile_k * bytes(A) + tile_n * tile_k * bytes(B)``); a pipeline
    with ``double_buffer`` keeps two such stages, so its bound is half of what the architecture has. None: no bound.
    """

    schedulers: tuple[str, ...] = Field(min_length=1)
    epilogues: tuple[str, ...] = Field(min_length=1)
    lds_bytes: int | None = Field(default=None, gt=0)
    double_buffer: bool = False
    preshuffle: bool = False
    persistent: tuple[bool, ...] = Field(default=(False,), min_length=1)
    num_wave_groups: tuple[int, ...] = Field(default=(1,), min_length=1)
    k_block_per_cu: tuple[int, ...] = Field(default=(1,), min_length=1)
    split_k: tuple[bool, ...] = Field(default=(False,), min_length=1)


class TileLimits(_Frozen):
    """Legal extents of a tile."""

    m: ChoicesField
    n: ChoicesField
    k: ChoicesField


class FeatureNeed(_Frozen):
    """Kernels of this dtype key and warp-tile K run only on a device that has ``feature`` beyond the architecture."""

    feature: str = Field(min_length=1)
    dtypes: str
    warp_tile_k: int = Field(gt=0)


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


class Arch(_Frozen):
    """One architecture: what a kernel for it may look like, and the numbers that selection needs.

    A dtype key is ``<a>_<b>_<acc>``, e.g. ``fp16_fp16_fp32``. ``flops_per_clock_per_cu`` counts dense multiplies and
    adds separately, by the dtype of A. ``compute_units`` is 0 where the device must be asked. ``compute_unit``: None on
    CPUs, and where nobody wrote down what one holds; occupancy is unknown then. ``fp8_format`` says how fp8 and bf8 are
    encoded: OCP (with infinities or negative zero) or FNUZ (with neither); it means nothing where no dtype is one.
    """

    schema_version: Literal[1]
    name: str = Field(pattern=r"^[a-z0-9_]+$")
    backend: str
    family: str
    target: str
    description: str
    sources: tuple[str, ...] = Field(min_length=1)
    wave_size: int = Field(gt=0)
    compute_units: int = Field(ge=0)
    clock_ghz: float = Field(gt=0)
    memory_gbytes_per_s: float = Field(gt=0)
    lds_bytes: int = Field(gt=0)
    fp8_format: Literal["ocp", "fnuz"] = "ocp"
    compute_unit: ComputeUnit | None = None
    flops_per_clock_per_cu: dict[str, float]
    layouts: tuple[str, ...] = Field(min_length=1)
    tile: TileLimits
    waves: Triples = Field(min_length=1)
    clusters: Triples = Field(default=((1, 1, 1),), min_length=1)
    pipelines: dict[str, PipelineLimits] = Field(min_length=1)
    warp_tiles: dict[str, Triples] = Field(min_length=1)
    preshuffle_warp_tiles: dict[str, Triples] = {}
    outputs: dict[str, tuple[str, ...]]
    feature_needs: tuple[FeatureNeed, ...] = ()

    @model_validator(mode="after")
    def _tables_agree(self) -> Arch:
        keys = set(self.warp_tiles)
        if set(self.outputs) != keys:
            raise ValueError(f"outputs must have exactly the dtype keys of warp_tiles: {', '.join(sorted(keys))}")
        if not set(self.preshuffle_warp_tiles) <= keys:
            raise ValueError("preshuffle_warp_tiles has a dtype key that warp_tiles lacks")
        rated, offered = set(self.flops_per_clock_per_cu), {key.split("_")[0] for key in keys}
        if rated != offered:
            raise ValueError(f"flops_per_clock_per_cu must rate exactly these dtypes: {', '.join(sorted(offered))}")
        return self

    @functools.cached_property
    def epilogues(self) -> tuple[str, ...]:
        """Every epilogue that some pipeline offers."""
        return tuple(dict.fromkeys(item for limits in self.pipelines.values() for item in limits.epilogues))

    @functools.cached_property
    def schedulers(self) -> tuple[str, ...]:
        """Every scheduler that some pipeline offers."""
        return tuple(dict.fromkeys(item for limits in self.pipelines.values() for item in limits.schedulers))

    @functools.cached_property
    def wave_set(self) -> frozenset[Triple]:
        """``waves`` for membership tests."""
        return frozenset(self.waves)

    @functools.cached_property
    def cluster_set(self) -> frozenset[Triple]:
        """``clusters`` for membership tests."""
        return frozenset(self.clusters)

    @functools.cached_property
    def warp_tile_sets(self) -> Mapping[str, frozenset[Triple]]:
        """``warp_tiles`` for membership tests."""
        return {key: frozenset(tiles) for key, tiles in self.warp_tiles.items()}

    @functools.cached_property
    def preshuffle_warp_tile_sets(self) -> Mapping[str, frozenset[Triple]]:
        """``preshuffle_warp_tiles`` for membership tests."""
        return {key: frozenset(tiles) for key, tiles in self.preshuffle_warp_tiles.items()}

    def lds_budget(self, pipeline: str) -> int | None:
        """Bytes that one stage of A and B may take; None where the pipeline has no bound. KeyError: not offered."""
        return self.pipelines[pipeline].lds_bytes

    def features(self, dtypes: str, warp_tile_k: int) -> tuple[str, ...]:
        """What a device must have beyond the architecture for kernels of this dtype key and warp-tile K."""
        return tuple(
            sorted(n.feature for n in self.feature_needs if (n.dtypes, n.warp_tile_k) == (dtypes, warp_tile_k))
        )


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
        raw: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArchError(f"arch file {origin!r} is not JSON: {error}") from None
    try:
        return Arch.model_validate(raw)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, item['loc'])) or '(file)'}: {item['msg']}" for item in error.errors()]
        raise ArchError(f"arch file {origin!r} is wrong:\n" + "\n".join(lines)) from None

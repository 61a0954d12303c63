"""Schemas of requests to describe a library and to write a wheel, and of the manifests that wheels take."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kernelwright.arch import ComputeUnit
from kernelwright.codegen.inputs import Input

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Path = Annotated[str, Field(min_length=1, max_length=4096)]
_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$", max_length=255)]


class _Open(Input):
    """A schema that ignores unknown keys: a plan states more of a library than is read here."""

    model_config = ConfigDict(extra="ignore")


class _Expects(Input):
    device_kernels: int
    matrix_instructions: bool
    helpers: list[str]


class _Spec(_Open):
    op: _Word


class _Kernel(_Open):
    spec: _Spec


class _PlannedKernel(_Kernel):
    name: _Word
    identity: Digest
    arch: _Word
    features: str
    objects: list[_Path] = Field(min_length=1)
    report: _Path | None
    expects: _Expects | None = None
    counts: _Path | None = None
    limits: dict[str, int | float] = Field(default_factory=dict)


class _Model(Input):
    name: _Word
    op: _Word
    dtypes: list[_Word] = Field(min_length=1)
    arch: _Word
    sha256: Digest


class _Library(_Open):
    name: _Word
    arch: _Word
    backend: _Word
    abi_version: int
    device: str
    library: _Path
    wave_size: int = 1
    compute_unit: ComputeUnit | None = None
    toolchains: dict[str, str]
    kernels: list[_PlannedKernel]
    models: list[_Model] = Field(default_factory=list)


class BundleRequest(Input):
    """A request of ``kernelwright bundle``; ``materials`` are read by :mod:`provenance`."""

    stage: Literal["bundle"] = "bundle"
    library: _Library
    root: str = "."
    sha256: dict[str, Digest] = Field(default_factory=dict)
    materials: Any = None


class WheelRequest(Input):
    """A request of ``kernelwright wheel``; ``materials`` as above."""

    stage: Literal["wheel"] = "wheel"
    project: _Path
    files: dict[str, _Path]
    licenses: dict[str, _Path] = Field(default_factory=dict)
    trees: list[str] = Field(default_factory=list)
    arch: _Word | None = None
    materials: Any = None
    output: _Path


class WheelManifest(_Open):
    """The part of a manifest that a wheel's metadata reads."""

    arch: str
    backend: Literal["ck_tile", "cutlass", "cpu"]
    device: str
    abi_version: int
    kernels: list[_Kernel]

"""Each template of an architecture once, in a small tile: dtypes and layouts in turn, others on each architecture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from gemm.amd.every import VARIANTS
from kernelwright.arch import load, names
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.kernel_sets import PURPOSES, expand_kernel_set
from kernelwright.codegen.operations.gemm.legalise import first_legal
from kernelwright.codegen.selecting.expand import EmptyExpansionError

_TILES = ((64, 64), (64, 128), (128, 64), (128, 128))
_ROW_BYTES = (64, 128, 32)


@dataclass(frozen=True)
class Template:
    """What makes a kernel another program than others, but for extents, dtypes and layouts; and one kernel of it."""

    label: str
    kernel: Kernel


def templates(name: str) -> Iterator[Template]:
    """Every pipeline with each scheduler, epilogue and split K; every variant, in pipelines in turn."""
    arch = load(name)
    seen: set[str] = set()
    for number, fields in enumerate(_fields(name)):
        kernel = _smallest(name, fields, 5 * number + 3 * names().index(arch.name))
        if kernel is not None and kernel.identity not in seen:
            seen.add(kernel.identity)
            yield Template(" ".join(f"{key}={value}" for key, value in fields.items()), kernel)


def members(name: str) -> Iterator[Template]:
    """The smallest member of a preselected set of each purpose, dtypes and layouts in turn."""
    purposes = [purpose for purpose in PURPOSES if purpose not in ("essential", "all")]
    for number, purpose in enumerate(purposes):
        for dtype, layout in _turn(5 * number + 3 * names().index(name)):
            try:
                kernels = expand_kernel_set(f"{dtype}_{layout}_{purpose}", load(name)).kernels
            except EmptyExpansionError:
                continue
            smallest = min(kernels, key=lambda kernel: kernel.spec.tile.m * kernel.spec.tile.n)
            yield Template(f"set={dtype}_{layout}_{purpose}", smallest)
            break


def _fields(name: str) -> Iterator[dict[str, object]]:
    pipelines = gemm_section(load(name)).pipelines
    for pipeline, facts in pipelines.items():
        for scheduler, epilogue in product(facts.schedulers, facts.epilogues):
            yield {"pipeline": str(pipeline), "scheduler": str(scheduler), "epilogue": str(epilogue)}
    usual = {"scheduler": "intrawave", "epilogue": "cshuffle"}
    for pipeline in pipelines:
        yield {"pipeline": str(pipeline), **usual, "split_k": True}
    others = [str(each) for each in pipelines if str(each) not in ("compv6", "preshufflev2")]
    for number, variant in enumerate(VARIANTS):
        scheduler = "default" if "pipeline" in variant else "intrawave"
        yield {"pipeline": others[number % len(others)], **usual, "scheduler": scheduler, **variant}


def _smallest(name: str, fields: Mapping[str, object], start: int) -> Kernel | None:
    usual = {
        "pad": [True, True, fields["pipeline"] != "comp_async"],
        "preshuffle": fields["pipeline"] == "preshufflev2",
    }
    waves = ((2, 2, 1), (1, 4, 1)) if load(name).wave_size == 64 else ((4, 2, 1), (2, 4, 1))
    forms = [
        {**fields, **usual, "tile": list(tile), "k_bytes": row, "wave": list(wave)}
        for tile, row, wave in product(_TILES, _ROW_BYTES, waves)
    ]
    for dtype, layout in _turn(start):
        kernel, _ = first_legal(forms, dtype, layout, load(name))
        if kernel is not None:
            return kernel
    return None


def _turn(start: int) -> Iterator[tuple[DType, str]]:
    """Dtypes and layouts from a place on."""
    every = [(dtype, layout.value) for layout in Layout for dtype in DType if dtype is not DType.INT32]
    for at in range(len(every)):
        yield every[(start + at) % len(every)]

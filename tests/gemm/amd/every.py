"""Every legal pipeline, scheduler, epilogue, layout, dtype and split K of an architecture together, in one tile; and
every variant in every dtype or pipeline, layouts in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from kernelwright.arch import load
from kernelwright.codegen.dtypes import Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.selecting.specs import parse_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError

# (tile, waves, warp tile), the first that is legal is taken.
_WAVE64 = (
    ((128, 128, 32), (2, 2, 1), (32, 32, 16)),
    ((128, 128, 64), (2, 2, 1), (32, 32, 32)),
    ((128, 128, 64), (2, 2, 1), (32, 32, 16)),
    ((128, 128, 64), (2, 2, 1), (16, 16, 32)),
    ((64, 64, 64), (2, 2, 1), (16, 16, 32)),
    ((64, 64, 32), (2, 2, 1), (32, 32, 8)),
    ((64, 64, 32), (2, 2, 1), (16, 16, 16)),
    ((128, 128, 16), (2, 2, 1), (16, 16, 16)),
    ((64, 64, 16), (2, 2, 1), (16, 16, 4)),
)
_WAVE32 = (
    ((128, 128, 32), (4, 2, 1), (16, 16, 16)),
    ((128, 128, 64), (4, 2, 1), (16, 16, 16)),
    ((64, 64, 32), (2, 4, 1), (16, 16, 16)),
    ((64, 64, 64), (2, 4, 1), (16, 16, 16)),
)
_PACKED_TILES = (
    ((128, 128, 64), (1, 4, 1), (16, 16, 32)),
    ((128, 128, 128), (1, 4, 1), (16, 16, 64)),
    ((128, 128, 64), (2, 2, 1), (32, 32, 16)),
    ((128, 64, 64), (4, 2, 1), (16, 16, 16)),
    ((128, 64, 128), (4, 2, 1), (16, 16, 16)),
)
VARIANTS: tuple[dict[str, object], ...] = (
    {"num_d": 1, "activation": "gelu"},
    {"num_d": 2, "d_op": "multiply"},
    {"num_d": 4, "activation": "relu"},
    *({"activation": name} for name in ("relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh")),
    {"persistent": True},
    {"batched": True},
    {"grouped": True},
    {"grouped": True, "persistent": True},
    {"stream_k": "linear"},
    {"stream_k": "tree"},
    {"stream_k": "linear", "batched": True, "num_d": 1, "activation": "silu"},
    {"split_k": True, "batched": True, "num_d": 1, "activation": "tanh"},
    {"pipeline": "preshufflev2"},
    {"pipeline": "preshufflev2", "persistent": True, "num_d": 1},
)


def variants(name: str) -> Iterator[Kernel]:
    """Each variant in compv3 and every dtype, in other pipelines in one dtype; and mixed 8-bit floats."""
    arch = load(name)
    dtypes = [key.split("_")[0] for key in gemm_section(arch).warp_tiles if len(set(key.split("_")[:2])) == 1]
    mixed = [key.split("_")[:2] for key in gemm_section(arch).warp_tiles if len(set(key.split("_")[:2])) == 2]
    places = [
        *(("compv3", {"dtype": dtype}) for dtype in dtypes),
        *(
            (pipeline, {"dtype": "fp16"})
            for pipeline in ("mem", "comp_async", "compv4")
            if pipeline in gemm_section(arch).pipelines
        ),
    ]
    layouts = [layout.value for layout in Layout]
    for number, (variant, (pipeline, dtype)) in enumerate(product(VARIANTS, places)):
        if "pipeline" in variant and pipeline != "compv3":
            continue
        usual = {"pipeline": pipeline, "scheduler": "intrawave", "epilogue": "cshuffle", **dtype, **variant}
        if "pipeline" in variant:
            usual["scheduler"] = "default"
        tried = [layouts[number % 4], "rcr"]
        kernel = next(filter(None, (_legal(name, {**usual, "layout": layout}) for layout in tried)), None)
        if kernel is not None:
            yield kernel
    for a, b in mixed:
        types = {"dtype_a": a, "dtype_b": b, "dtype_c": "fp16", "dtype_acc": "fp32"}
        usual = {"pipeline": "compv3", "scheduler": "intrawave", "epilogue": "cshuffle", "layout": "rcr", **types}
        kernel = _legal(name, usual)
        if kernel is not None:
            yield kernel


def every(name: str) -> Iterator[Kernel]:
    """The kernels of an architecture, in a fixed order."""
    arch = load(name)
    dtypes = [key.split("_")[0] for key in gemm_section(arch).warp_tiles if len(set(key.split("_")[:2])) == 1]
    for (pipeline, facts), dtype, layout, split_k in product(
        gemm_section(arch).pipelines.items(), dtypes, Layout, (False, True)
    ):
        for scheduler, epilogue in product(facts.schedulers, facts.epilogues):
            chosen = {"pipeline": pipeline, "dtype": dtype, "layout": layout.value, "split_k": split_k}
            kernel = _legal(name, {**chosen, "scheduler": scheduler, "epilogue": epilogue})
            if kernel is not None:
                yield kernel


def _legal(name: str, chosen: dict[str, object]) -> Kernel | None:
    arch = load(name)
    tiles = _WAVE32 if arch.wave_size == 32 else _WAVE64
    for tile, wave, warp_tile in _PACKED_TILES if chosen["pipeline"] == "preshufflev2" else tiles:
        pad = [True, True, chosen["pipeline"] != "comp_async"]
        extents = {"tile": list(tile), "wave": list(wave), "warp_tile": list(warp_tile), "pad": pad}
        try:
            kernel = Kernel(arch=name, spec=parse_spec({"op": "gemm", **chosen, **extents}, arch))
        except SpecError:
            continue
        if not validate(kernel, arch):
            return kernel
    return None

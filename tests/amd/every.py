"""Every legal pipeline, scheduler, epilogue, layout, dtype and split K of an architecture together, in one tile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewright.arch import load
from tilewright.codegen.spec import Kernel, Layout
from tilewright.codegen.specs import parse_spec
from tilewright.codegen.validate import validate
from tilewright.codegen.violations import SpecError

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


def every(name: str) -> Iterator[Kernel]:
    """The kernels of an architecture, in a fixed order."""
    arch = load(name)
    dtypes = [key.split("_")[0] for key in arch.warp_tiles if len(set(key.split("_")[:2])) == 1]
    for (pipeline, facts), dtype, layout, split_k in product(arch.pipelines.items(), dtypes, Layout, (False, True)):
        for scheduler, epilogue in product(facts.schedulers, facts.epilogues):
            chosen = {"pipeline": pipeline, "dtype": dtype, "layout": layout.value, "split_k": split_k}
            found = _legal(name, {**chosen, "scheduler": scheduler, "epilogue": epilogue})
            if found is not None:
                yield found


def _legal(name: str, chosen: dict[str, object]) -> Kernel | None:
    arch = load(name)
    for tile, wave, warp_tile in _WAVE32 if arch.wave_size == 32 else _WAVE64:
        pad = [True, True, chosen["pipeline"] != "comp_async"]
        extents = {"tile": list(tile), "wave": list(wave), "warp_tile": list(warp_tile), "pad": pad}
        try:
            kernel = Kernel(arch=name, spec=parse_spec({**chosen, **extents}, arch))
        except SpecError:
            continue
        if not validate(kernel, arch):
            return kernel
    return None

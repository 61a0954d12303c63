"""What shipped libraries serve of public models, as the table of docs/coverage.md has it.

After an intended change, package the targets of LIBRARIES and write their columns anew:
``PYTHONPATH=arch:codegen:bindings:jit:tile_engine:tests python tests/coverage_of_models/shipped.py dist/kernels``.
Those of AMD are compared by ``tests/amd/coverage_test.py``, which compiles no kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from kernelwright.dispatch import ArchMismatchError, KernelLibrary
from kernelwright.tile_engine.coverage.libraries import planner
from kernelwright.tile_engine.coverage.registry import PROBLEMS
from kernelwright.tile_engine.coverage.served import Share, shares

CPU = ("x86_64_v3", "x86_64_v4")
GPU = ("sm_90a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
LIBRARIES = {
    "gemm": {**dict.fromkeys(CPU, "cpu_gemm"), "sm_90a": "nvidia_gemm"},
    "convolution": {**dict.fromkeys(CPU, "cpu_convolution"), "sm_90a": "nvidia_convolution"},
    "attention": {**dict.fromkeys(CPU, "cpu_attention"), "sm_90a": "nvidia_attention"},
}
"""Operation → of each architecture the library's target in its folder below ``kernels``."""
DTYPES = ("fp16", "bf16")
PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
HEAD = f"| {' | '.join(('operation', 'use', *CPU, *GPU))} |"


def served(folder: Path, operation: str, arch: str) -> dict[str, Share] | None:
    """By use, of both element types together; None for a processor's library that this machine cannot run."""
    return shares_of(KernelLibrary.load(folder / LIBRARIES[operation][arch] / arch), operation)


def shares_of(library: KernelLibrary, operation: str) -> dict[str, Share] | None:
    """The same of a library."""
    try:
        dispatcher = planner([library])
    except ArchMismatchError:
        return None
    by_use: dict[str, Share] = {}
    for (_, use, _), one in shares(dispatcher, (one for dtype in DTYPES for one in PROBLEMS[operation](dtype))).items():
        share = by_use.setdefault(use, Share())
        share.problems, share.served = share.problems + one.problems, share.served + one.served
    return by_use


def stated() -> dict[tuple[str, str], dict[str, str]]:
    """The cells of the page by operation and use, and by architecture."""
    text = PAGE.read_text()
    lines = text[text.index(HEAD) :].split("\n\n")[0].splitlines()
    cells = [[word.strip() for word in line.strip("|").split("|")] for line in lines[2:]]
    return {(operation, use): dict(zip((*CPU, *GPU), shares, strict=True)) for operation, use, *shares in cells}


def cell(share: Share) -> str:
    """Percent, rounded down."""
    return str(100 * share.served // share.problems)


def table(kernels: Path) -> Iterator[str]:
    """The rows of the page."""
    yield HEAD
    yield "|" + "---|" * (2 + len(CPU) + len(GPU))
    for operation, archs in LIBRARIES.items():
        by_arch = {arch: served(kernels / operation, operation, arch) for arch in archs}
        for use in next(iter(by_arch.values())) or ():
            cells = [cell(shares[use]) if (shares := by_arch.get(arch)) else "" for arch in (*CPU, *GPU)]
            yield f"| {operation} | {use} | {' | '.join(cells)} |"


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]))))

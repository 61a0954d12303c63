"""Slow: every kernel of an architecture in one tile, built and run as the shipped ones are; minutes to hours.

``TILEWRIGHT_EVERY=gfx942 ./pants test tests/amd:every`` builds and runs all of them; ``TILEWRIGHT_EVERY=gfx942:mem``
those with "mem" in their name. ``TILEWRIGHT_EVERY=gfx942+variants`` takes the variants, also with a part of a name.
Without the variable nothing is built.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amd import compiled
from amd.every import every, variants
from amd.simulated import Bench, cases_of
from amd.variant_cases import cases_of as variant_cases_of
from amd.variants import Bench as VariantBench
from amd.variants import is_plain
from tilewright.arch import load
from tilewright.codegen.backends import DEFAULT_TOOLCHAINS
from tilewright.codegen.build import build_libraries, read_tree_roots
from tilewright.codegen.execute import LocalExecutor
from tilewright.codegen.select import Selection
from tilewright.codegen.spec import Kernel
from tilewright.dispatch import KernelLibrary

WHAT, _, PART = os.environ.get("TILEWRIGHT_EVERY", "").partition(":")
ARCH, _, VARIANTS = WHAT.partition("+")
KERNELS = [kernel for kernel in (variants if VARIANTS else every)(ARCH) if PART in kernel.name] if ARCH else []


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_every_result_is_right(kernel: Kernel, tmp_path: Path) -> None:
    assert compiled.TREES, "TILEWRIGHT_TREES names no file of toolchain folders"
    executor = LocalExecutor(read_tree_roots(compiled.TREES), compiled.cache_folder())
    chosen = Selection(load(ARCH), (kernel,), {})
    build_libraries("gemm", [chosen], DEFAULT_TOOLCHAINS, executor, tmp_path)
    library = KernelLibrary.load(tmp_path / ARCH)
    (entry,) = library.kernels
    if is_plain(entry):
        plain = Bench(library, entry)
        for case in cases_of(entry):
            plain.run(case)
    else:
        bench = VariantBench(library, entry)
        for each in variant_cases_of(entry):
            bench.run(each)

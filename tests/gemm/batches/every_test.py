"""Slow: kernels in batches of up to 8, cut apart, against compiles of each; a batch takes a minute of a processor.

``KERNELWRIGHT_EVERY=1 ./pants test tests/gemm/batches:every`` compares every shipped kernel of GEMM and convolution and
a sample of each set of :data:`SETS`, on all architectures; ``=gfx942`` those of one, ``=shipped`` the shipped ones.
Without the variable nothing is compiled.

Nothing is compiled twice (``tests/compiling.py``): a suite that was ended goes on where it was.
"""

from __future__ import annotations

import os

import pytest

from gemm.batches.both_ways import different
from kernelwright.arch import load, names
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.selecting.expand import EmptyExpansionError
from kernelwright.codegen.selecting.sets import expand_set

WHAT = os.environ.get("KERNELWRIGHT_EVERY", "")
AMD = tuple(name for name in names() if load(name).backend == "ck_tile")
SHIPPED = ("gemm:essential", "convolution:essential")
SETS = (*SHIPPED, "bf16_rcr_compute", "fp8_rcr_compute", "fp16_rcr_memory", "convolution:profiler")
SAMPLE = 16


def sample(name: str, arch: str) -> list[Kernel]:
    """Members of a set, evenly spaced by name; none where the architecture has none."""
    try:
        kernels = sorted(expand_set(name, load(arch)).kernels, key=lambda kernel: kernel.name)
    except EmptyExpansionError:
        return []
    return kernels[:: -(-len(kernels) // SAMPLE)]


ARCHS = [arch for arch in AMD if WHAT in ("1", "shipped", arch)]
CHOSEN = {(arch, name): sample(name, arch) for arch in ARCHS for name in (SHIPPED if WHAT == "shipped" else SETS)}


@pytest.mark.parametrize(("arch", "name"), [key for key, kernels in CHOSEN.items() if len(kernels) > 1])
def test_every_kernel_is_the_same_together_and_singly(arch: str, name: str) -> None:
    assert different(CHOSEN[arch, name]) == []

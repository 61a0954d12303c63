"""Kernels compiled on the GPU's own machine by ``Registry.build`` with its nvcc, and run there.

$KERNELWRIGHT_CUTLASS names the folder of the unpacked nvidia-cutlass wheel; without it, or without nvcc, it is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import NEEDS_DISPATCHER

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("kernelwright.dispatch")
jit = pytest.importorskip("kernelwright.jit")
from build_here import toolchains, trees  # noqa: E402
from places import DEVICE, synchronize  # noqa: E402

CUDA, GCC = Path("/usr/local/cuda"), "/usr/bin/gcc"
CUTLASS = Path(os.environ.get("KERNELWRIGHT_CUTLASS", "/-"))
pytestmark = [
    *NEEDS_DISPATCHER,
    pytest.mark.skipif(
        not (CUTLASS.is_dir() and (CUDA / "bin" / "nvcc").exists()), reason="needs $KERNELWRIGHT_CUTLASS and nvcc"
    ),
]


def test_a_kernel_is_built_run_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def registry() -> jit.Registry:
        roots = trees(CUTLASS.resolve(), CUDA.resolve(), tmp_path / "trees")
        tools = toolchains(f"{CUDA}/bin/nvcc", GCC)
        made = jit.Registry(DEVICE, cache=tmp_path / "cache", toolchains=tools, trees=roots)
        made.add(
            op="gemm",
            dtype="bf16",
            layout="rcr",
            tile=[64, 96, 64],
            wave=[1, 1, 1],
            warp_tile=[64, 96, 16],
            scheduler="pingpong",
        )
        return made

    assert [kernel.name for kernel in registry().missing()] == [kernel.name for kernel in registry().kernels]
    dispatcher = registry().dispatcher(max_workers=2, progress=False)
    a, b = (torch.randn(extent, 200, device=DEVICE).bfloat16() for extent in (130, 264))
    out = dispatcher.gemm(a, b.T)
    synchronize()
    expected = a.double() @ b.double().T
    assert ((out.double() - expected).norm() <= 4e-3 * expected.norm()).item()
    monkeypatch.setenv("KERNELWRIGHT_JIT", "off")  # found, not compiled again
    assert registry().missing() == ()
    assert len(registry().build().kernels) == 1

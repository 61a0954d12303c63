from __future__ import annotations

from kernelwright.codegen.selecting.selection import load_archs, select


def test_a_kernel_is_shown_in_a_line() -> None:
    sizes = {"tile": [128, 128, 32], "wave": [2, 2, 1], "warp_tile": [32, 32, 16]}
    spec = {"op": "gemm", "dtype": "bf16", "layout": "rcr", "pipeline": "compv3", **sizes}
    (item,) = select("specs", [spec], ["gfx942"], load_archs())
    (kernel,) = item.kernels
    assert repr(kernel) == f"<Kernel gfx942: {kernel.name}, {kernel.identity[:12]}>"

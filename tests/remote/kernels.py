"""The BUILD file of a small library."""

from __future__ import annotations

_KERNEL = 'gemm_kernel(name="{name}", arch="{arch}", dtype="{dtype}", layout="rcr", {tiles})'
_AMD = (
    'tile=[64, 64, {k}], wave=[2, 2, 1], warp_tile=[{warp}], pipeline="compv3", epilogue="cshuffle", '
    'scheduler="intrawave"'
)


def small(tile_k: int) -> str:
    """``:lib`` of a CPU kernel, which ``tile_k`` tells from others, and an AMD kernel."""
    cpu = _KERNEL.format(
        name="cpu", arch="x86_64_v3", dtype="fp32", tiles=f"tile=[48, 64, {tile_k}], warp_tile=[6, 16, 1]"
    )
    amd = _KERNEL.format(name="amd", arch="gfx942", dtype="bf16", tiles=_AMD.format(k=32, warp="32, 32, 16"))
    return "\n".join([cpu, amd, 'kernel_library(name="lib", dependencies=[":cpu", ":amd"])', ""])

"""The readable name of a norm kernel."""

from __future__ import annotations

from kernelwright.codegen.operations.norm.spec import NormSpec


def kernel_name(spec: NormSpec) -> str:
    """Return a file name, unique within an architecture; never parse it. E.g. ``rms_norm_forward_bf16_int8_4``.

    On GPUs it has rows of a workgroup, threads of a row, vector and unrolling: ``rms_norm_forward_bf16_1x256x8x2``.
    """
    quantised = f"_{spec.dtype_y}" * (spec.dtype_y != spec.dtype)
    tile = (spec.rows_per_block, spec.threads_per_row, spec.vector)
    words = f"{spec.unroll}" if tile == (1, 1, 0) else "x".join(map(str, (*tile, spec.unroll)))
    return f"{spec.kind}_norm_{spec.direction}_{spec.dtype}{quantised}_{words}"

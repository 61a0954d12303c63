"""The readable name of a norm kernel."""

from __future__ import annotations

from kernelwright.codegen.operations.norm.spec import NormSpec


def kernel_name(spec: NormSpec) -> str:
    """Such as ``rms_norm_forward_bf16_int8_4``: a file name, unique within an architecture; never parse it."""
    quantised = f"_{spec.dtype_y}" * (spec.dtype_y != spec.dtype)
    return f"{spec.kind}_norm_{spec.direction}_{spec.dtype}{quantised}_{spec.unroll}"

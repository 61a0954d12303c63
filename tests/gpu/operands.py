"""Operands on the GPU with poisoned surroundings, a float64 reference, and the error that each dtype may make."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from places import DEVICE
from raw_abi import Kernel

TORCH = {
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "bf8": torch.float8_e5m2,
    "int8": torch.int8,
    "int32": torch.int32,
}
# Spacing of the output dtype relative to a value; results are rounded once.
_ROUNDING = {"fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7, "int32": 0.0}
GUARD_ROWS = 3
INTEGER_POISON = 0x5A5A5A5A


@dataclass
class Matrix:
    """A ``rows`` x ``columns`` view (either order in memory) into storage whose other elements are poison."""

    storage: torch.Tensor
    view: torch.Tensor
    leading: int

    @property
    def pointer(self) -> int:
        return self.storage.data_ptr()

    def outside(self) -> torch.Tensor:
        """The bytes of storage that the view does not cover."""
        mask = torch.ones(self.storage.shape, dtype=torch.bool, device=DEVICE)
        lines, contiguous = (self.view if self.view.stride(1) == 1 else self.view.T).shape
        mask[:lines, :contiguous] = False
        return self.storage[mask].view(torch.uint8)


def matrix(rows: int, columns: int, dtype: str, order: str, leading: int = 0, fill: bool = True) -> Matrix:
    """Random values (``fill``) or poison, with guard lines behind and ``leading`` elements between lines."""
    lines, contiguous = (rows, columns) if order == "r" else (columns, rows)
    leading = leading or contiguous
    storage = torch.empty(lines + GUARD_ROWS, leading, dtype=TORCH[dtype], device=DEVICE)
    if dtype in ("int8", "int32"):
        storage.fill_(INTEGER_POISON if dtype == "int32" else 0x5A)
    else:
        storage.copy_(torch.full(storage.shape, float("nan"), device=DEVICE))
    inner = storage[:lines, :contiguous]
    if fill and dtype == "int8":
        inner.copy_(torch.randint(-128, 128, inner.shape, device=DEVICE))
    elif fill and dtype == "int32":
        inner.copy_(torch.randint(-(2**20), 2**20, inner.shape, device=DEVICE))
    elif fill:
        inner.copy_(torch.randn(inner.shape, device=DEVICE))
    return Matrix(storage, inner if order == "r" else inner.T, leading)


def reference(
    kernel: Kernel, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result in float64 and the largest error that each of its elements may have.

    Accumulating K products in fp32 costs at most one unit of 2^-22 per 16 of K, relative to the sum of magnitudes
    (wgmma truncates). 8-bit floats accumulate in about 14 bits throughout: 4 units of 2^-13, and one more per 1024 of K
    (2.6 of them seen at K = 4100). Then comes one rounding of the output.
    """
    dtype_a, _, dtype_c, _ = kernel.dtypes
    wide_a, wide_b = a.double(), b.double()
    result = alpha * (wide_a @ wide_b)
    magnitude = abs(alpha) * (wide_a.abs() @ wide_b.abs())
    if c is not None and beta != 0:
        result += beta * c.double()
        magnitude += abs(beta) * c.double().abs()
    if dtype_a == "int8":
        return result, torch.zeros_like(result)
    k = a.shape[1]
    unit = (4 + k / 1024) * 2.0**-13 if dtype_a in ("fp8", "bf8") else (k / 16 + 8) * 2.0**-22
    return result, unit * magnitude + _ROUNDING[dtype_c] * result.abs()

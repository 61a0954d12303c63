"""``scaled_dot_product_attention`` takes what torch's function takes: random shapes, memory, masks; real kernels.

Reference is torch's own in float64, by the backend that takes most. What it refuses must be a KernelwrightError.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as torchs

from kernelwright.dispatch import KernelwrightError
from kernelwright.torch import scaled_dot_product_attention

EXAMPLES = 3000 if os.environ.get("KERNELWRIGHT_EVERY") else 100
# Of 1 and the largest element. Gradients are small sums of terms with the rounding of O, which weights of 3 multiply.
ALLOWED = {torch.float32: 2e-5, torch.bfloat16: 0.15}
ROWS = 20  # of queries of one head, at most
MEMORY = ("dense", "columns", "stepped", "rows first", "one row", "one batch")
COMMON = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=not os.environ.get("KERNELWRIGHT_EVERY"),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Shapes and how each tensor lies in memory; mask is a shape, or None."""

    shapes: tuple[tuple[int, ...], ...]
    memory: tuple[str, ...]
    mask: tuple[int, ...] | None
    boolean: bool
    causal: bool
    gqa: bool
    scale: float | None
    dropout: float


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly legal ones: extents of 1 and absent ones are broadcast, and one in ten is changed to something else.

    None is 0: torch gives tensors without elements the query's shape, whatever the others have.
    """
    front = draw(st.lists(st.integers(1, 3), max_size=2))
    heads = draw(st.integers(1, 6))
    rows, keys = draw(st.integers(1, ROWS)), draw(st.integers(1, 20))
    hdim, hdim_v = draw(st.sampled_from([1, 7, 8, 16, 33, 64])), draw(st.sampled_from([1, 8, 24, 64]))
    gqa = draw(st.booleans())

    def some(extents: list[int]) -> list[int]:
        if draw(st.booleans()):
            return extents
        extents = [1 if draw(st.integers(0, 3)) == 0 else one for one in extents]
        return extents[draw(st.integers(0, len(extents))) :]

    def of_heads() -> int:
        return draw(st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0] or [heads])) if gqa else heads

    def operand(extent: int, inner: int, own: int) -> tuple[int, ...]:
        shape = [*some(front), own, extent, inner] if gqa else [*some([*front, own]), extent, inner]
        if draw(st.integers(0, 39)) == 0:
            shape[draw(st.integers(0, len(shape) - 1))] = draw(st.integers(1, 5))
        return tuple(shape)

    shared = of_heads()
    other = of_heads() if draw(st.integers(0, 4)) == 0 else shared
    shapes = operand(rows, hdim, heads), operand(keys, hdim, shared), operand(keys, hdim_v, other)
    mask = None
    if draw(st.booleans()):
        mask = tuple(some([*front, heads, rows, keys])) or None
        if draw(st.integers(0, 19)) == 0:
            mask = (*(mask or ()), draw(st.integers(1, 5)))
    memory = tuple(draw(st.sampled_from(MEMORY)) for _ in range(4))
    return Case(
        shapes, memory, mask, draw(st.booleans()), mask is None and draw(st.booleans()), gqa,
        draw(st.sampled_from([None, None, 0.3, 0.0, -1.0])), draw(st.sampled_from([0.0] * 9 + [1.0])),
    )  # fmt: skip


def tensor(shape: tuple[int, ...], memory: str, dtype: torch.dtype) -> torch.Tensor:
    if memory == "columns" and len(shape) > 1:
        return torch.randn(*shape[:-2], shape[-1], shape[-2]).to(dtype).mT
    if memory == "stepped":
        return torch.randn(*shape[:-1], 2 * shape[-1]).to(dtype)[..., ::2]
    if memory == "rows first" and len(shape) > 2:
        return torch.randn(*shape[:-3], shape[-2], shape[-3], shape[-1]).to(dtype).transpose(-2, -3)
    if memory == "one row" and len(shape) > 1:
        return torch.randn(*shape[:-2], 1, shape[-1]).to(dtype).expand(shape)
    if memory == "one batch":
        return torch.randn(shape[-2:]).to(dtype).expand(shape)
    return torch.randn(shape).to(dtype)


def operands(case: Case, dtype: torch.dtype) -> list[torch.Tensor]:
    """Leaves that lie in memory as the case says."""
    shapes = [*case.shapes, *([case.mask] if case.mask else [])]
    made = [tensor(shape, memory, dtype) for shape, memory in zip(shapes, case.memory, strict=False)]
    if case.mask and case.boolean:
        made[3] = made[3] > -0.5
    return made


def reference(*operands: torch.Tensor, **options: Any) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return torchs(*operands, **options)


def results(
    function: Any, given: list[torch.Tensor], case: Case, dtype: torch.dtype, rows: tuple[int, ...] | None = None
) -> list[Any]:
    """O, and the gradients of a weighted sum; of a query that is expanded to ``rows``, if they are given."""
    typed = [one if one.dtype == torch.bool else one.detach().to(dtype).requires_grad_() for one in given]
    mask = {"attn_mask": typed[3]} if case.mask else {"is_causal": case.causal}
    query = typed[0] if rows is None else typed[0].expand(*rows, -1)
    out = function(query, *typed[1:3], scale=case.scale, enable_gqa=case.gqa, dropout_p=case.dropout, **mask)
    weights = torch.arange(out.numel()).reshape(out.shape) % 7 - 3
    return [out, *torch.autograd.grad(out, [one for one in typed if one.requires_grad], weights.to(dtype))]


@pytest.mark.parametrize("dtype", ALLOWED, ids=str)
def test_it_takes_what_torch_takes(dtype: torch.dtype) -> None:
    taken = refused = 0

    @COMMON
    @given(cases())
    def check(case: Case) -> None:
        nonlocal taken, refused
        torch.manual_seed(1)
        given = operands(case, dtype)
        try:
            wanted = results(reference, given, case, torch.float64)
        except (RuntimeError, IndexError):
            try:
                ours = results(scaled_dot_product_attention, given, case, dtype)
            except KernelwrightError:
                refused += 1
                return
            # torch does not let a mask alone have the batch that only the values have; with such queries it does.
            wanted = results(reference, given, case, torch.float64, ours[0].shape[:-1])
        ours = results(scaled_dot_product_attention, given, case, dtype)
        for what, one, other in zip(("out", "dq", "dk", "dv", "dmask"), ours, wanted, strict=False):
            assert one.shape == other.shape and one.dtype == dtype, what
            error = (one.double() - torch.nan_to_num(other)).abs()
            bound = ALLOWED[dtype] * (1 + torch.nan_to_num(other).abs().max().item() if other.numel() else 1)
            # Every row of queries adds its rounding to the gradient of a key, however small their sum is.
            rows = ours[0].shape[:-1].numel() / ROWS if what in ("dk", "dv") else 1
            bound *= max(1, rows) ** 0.5
            assert not error.numel() or error.max().item() <= bound, what
        taken += 1

    check()
    assert taken > EXAMPLES // 3 and refused > 0, (taken, refused)
    print(f"{dtype}: {taken} taken, {refused} refused as by torch")

"""What no kernel of norms serves runs torch's own operator: dtypes, autocast, transforms, devices without a library."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from kernelwright.torch import dispatchers, layer_norm, rms_norm

FALLS_BACK = True


def test_other_dtypes_and_regions_are_torchs() -> None:
    x = torch.randn(3, 8, dtype=torch.float64)
    assert torch.equal(rms_norm(x, (8,)), functional.rms_norm(x, (8,)))
    y, total = layer_norm(x, (8,), residual=x)
    assert torch.equal(total, 2 * x) and torch.equal(y, functional.layer_norm(2 * x, (8,)))
    narrow = torch.randn(3, 8)
    with torch.autocast("cpu"):
        assert torch.equal(layer_norm(narrow, (8,)), functional.layer_norm(narrow, (8,)))


def test_vmap_is_torchs() -> None:
    x = torch.randn(4, 3, 8)
    mapped = torch.vmap(lambda one: layer_norm(one, (8,)))(x)
    assert torch.allclose(mapped, functional.layer_norm(x, (8,)), atol=1e-6)


@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_operators_in_graphs_compute_by_torch_without_a_library(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, r = torch.randn(5, 24, requires_grad=True), torch.randn(5, 24)
    weight = torch.randn(24, requires_grad=True)
    norm = rms_norm if kind == "rms" else layer_norm

    def block(x: torch.Tensor) -> torch.Tensor:
        y, total = norm(x, (24,), weight, residual=r)
        return (y * total + norm(x, (24,))).sum()

    served = torch.autograd.grad(block(x), [x, weight])
    monkeypatch.setattr(dispatchers, "_in_use", {})
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    for one in (block, compiled):
        grads = torch.autograd.grad(one(x), [x, weight])
        assert all(torch.allclose(*pair, rtol=1e-4, atol=1e-4) for pair in zip(grads, served, strict=True))

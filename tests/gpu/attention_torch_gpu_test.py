"""``kernelwright.torch`` on a GPU: ``varlen_attn``, and gradients with what is added to the scores."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from attention_dispatch_gpu_test import (  # noqa: E402, F401 - fixtures
    HDIM,
    causal,
    dispatch,
    dispatcher,
    drawn,
    exact,
    in_use,
    kernelwright_torch,
    near,
    pytestmark,
)
from places import DEVICE, on_new_stream, sleep, synchronize  # noqa: E402

QUERIES, KEYS = (5, 300, 0, 1, 128), (9, 300, 7, 200, 64)
HEADS, KV_HEADS = 8, 2


def starts(lengths: tuple[int, ...]) -> Any:
    return torch.tensor([0, *lengths], device=DEVICE).cumsum(0).int()


def leaves(*front: int, rows: int, keys: int) -> tuple[Any, ...]:
    """Q, K and V of (*front, rows, heads, hdim)."""
    shapes = (rows, HEADS), (keys, KV_HEADS), (keys, KV_HEADS)
    return tuple(drawn(*front, *shape, HDIM).requires_grad_() for shape in shapes)


def close(grads: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    synchronize()
    return all((a.double() - b.double()).norm() <= 2e-2 * b.double().norm() for a, b in zip(grads, wanted, strict=True))


def with_sinks(out: Any, lse: Any, sinks: Any) -> Any:
    """O of rows whose sums have a score more, which has no value; LSE is heads x rows."""
    return out * torch.exp(lse - torch.logaddexp(lse, sinks.double()[:, None])).t()[..., None]


def requests(operands: tuple[Any, ...], left: int, sinks: Any = None, slopes: Any = None) -> Any:
    """O of all requests in float64; causal, the last query at the last key."""
    outs = []
    for (q0, q1), (k0, k1) in zip(pairwise(starts(QUERIES).tolist()), pairwise(starts(KEYS).tolist()), strict=True):
        q, k, v = operands[0][q0:q1], operands[1][k0:k1], operands[2][k0:k1]
        sees, bias = causal(q1 - q0, k1 - k0, left), torch.zeros((), device=DEVICE)
        if slopes is not None:
            place = torch.arange(q1 - q0, device=DEVICE)[:, None] + (k1 - k0) - (q1 - q0)
            bias = -slopes.double()[:, None, None] * (place - torch.arange(k1 - k0, device=DEVICE)).abs()
        seen = sees.any(1)
        out, lse = exact(q, k, v, sees | ~seen[:, None], bias)
        out = with_sinks(out, lse, sinks) if sinks is not None else out
        outs.append(torch.where(seen[:, None, None], out, 0.0))
    return torch.cat(outs)


@pytest.mark.parametrize("left", [-1, 40])
@pytest.mark.parametrize("kind", ["plain", "sinks", "alibi", "deterministic"])
def test_varlen(in_use: None, left: int, kind: str) -> None:  # noqa: F811
    """On a stream that is held up: work elsewhere would come too early. Some queries see no key."""
    operands = leaves(rows=sum(QUERIES), keys=sum(KEYS))
    sinks = torch.randn(HEADS, device=DEVICE, requires_grad=True) if kind == "sinks" else None
    slopes = torch.rand(HEADS, device=DEVICE) * 0.05 if kind == "alibi" else None
    wanted_of = [*operands, *([sinks] if sinks is not None else [])]
    with on_new_stream():
        sleep()
        out = kernelwright_torch.varlen_attn(
            *operands, starts(QUERIES), starts(KEYS), max(QUERIES), max(KEYS), window_size=(left, 0), enable_gqa=True,
            sinks=sinks, alibi_slopes=slopes, deterministic=kind == "deterministic",
        )  # fmt: skip
        late = torch.randn_like(out)
        grads = torch.autograd.grad(out, wanted_of, late)
    wide = [leaf.detach().double().requires_grad_() for leaf in wanted_of]
    wanted = requests(tuple(wide[:3]), left, wide[3] if sinks is not None else None, slopes)
    assert near(out, wanted.detach())
    assert close(grads, torch.autograd.grad(wanted, wide, late.double()))


@pytest.mark.parametrize("kind", ["alibi", "mask", "boolean"])
def test_gradients_with_a_bias(in_use: None, kind: str) -> None:  # noqa: F811
    operands = leaves(2, rows=200, keys=333)
    options: dict[str, Any]
    if kind == "alibi":
        slopes = torch.rand(2, HEADS, device=DEVICE) * 0.1
        distance = (torch.arange(200, device=DEVICE)[:, None] + 133 - torch.arange(333, device=DEVICE)).abs()
        added, options = -slopes.double()[:, :, None, None] * distance, {"alibi_slopes": slopes}
    elif kind == "mask":
        given = drawn(1, HEADS, 200, 333)
        added, options = given.double(), {"attn_mask": given}
    else:
        given = torch.rand(2, 1, 200, 333, device=DEVICE) < 0.7
        hidden = torch.zeros(given.shape, device=DEVICE).masked_fill(~given, -math.inf)
        added, options = hidden, {"attn_mask": given}
    q, k, v = (leaf.transpose(1, 2) for leaf in operands)
    out = kernelwright_torch.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
    late = torch.randn_like(out)
    grads = torch.autograd.grad(out, operands, late)
    wide = [leaf.detach().double().requires_grad_() for leaf in operands]
    added = added.expand(2, HEADS, 200, 333)
    whole = [exact(*(leaf[at] for leaf in wide), bias=added[at])[0].transpose(0, 1) for at in range(2)]
    wanted = torch.stack(whole)
    assert near(out, wanted.detach())
    assert close(grads, torch.autograd.grad(wanted, wide, late.double()))


def test_gradients_of_a_bias_are_refused(in_use: None) -> None:  # noqa: F811
    q, k, v = (leaf.transpose(1, 2) for leaf in leaves(1, rows=64, keys=64))
    bias = drawn(1, HEADS, 64, 64).requires_grad_()
    out = kernelwright_torch.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)
    with pytest.raises(dispatch.NoKernelError, match=r"dbias.*attn_mask\.detach\(\)"):
        torch.autograd.grad(out, bias, torch.randn_like(out))


def test_deterministic_gradients_repeat(in_use: None) -> None:  # noqa: F811
    operands = leaves(2, rows=900, keys=900)
    q, k, v = (leaf.transpose(1, 2) for leaf in operands)
    late, runs = drawn(2, HEADS, 900, HDIM), []
    for _ in range(5):
        out = kernelwright_torch.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True, deterministic=True
        )
        runs.append(torch.autograd.grad(out, operands, late))
    synchronize()
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(runs[0], run, strict=True))

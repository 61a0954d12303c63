"""Operands as torch takes them: broadcast, strided, empty, masked; what torch refuses, by name. Kernels are mocks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torch
from kernelwright.dispatch import KernelwrightError
from kernelwright.torch import scaled_dot_product_attention, varlen_attn
from torch.nn.attention import SDPBackend, sdpa_kernel

STARTS = torch.tensor([0, 2, 5], dtype=torch.int32)

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def some(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def check(operands: list[torch.Tensor], **options: Any) -> None:
    """Results and gradients are those of torch, from the backend that takes most."""
    with sdpa_kernel(SDPBackend.MATH):
        wanted = torch.nn.functional.scaled_dot_product_attention(*operands, **options)
    actual = scaled_dot_product_attention(*operands, **options)
    torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=1e-5)
    weights = torch.randn_like(wanted)
    differentiable = [one for one in operands if one.requires_grad]
    pairs = [torch.autograd.grad(result, differentiable, weights) for result in (actual, wanted)]
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 6)),
        ((1, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)),
        ((2, 3, 5, 8), (2, 1, 7, 8), (2, 1, 7, 6)),
        ((2, 1, 5, 8), (2, 3, 7, 8), (1, 1, 7, 6)),
        ((2, 3, 5, 8), (3, 7, 8), (7, 6)),
        ((5, 8), (3, 7, 8), (3, 7, 6)),
        ((3, 5, 8), (3, 7, 8), (3, 7, 6)),
        ((2, 1, 3, 5, 8), (4, 1, 7, 8), (2, 4, 3, 7, 6)),
        ((5, 1, 2, 3, 5, 8), (2, 3, 7, 8), (1, 2, 1, 3, 7, 6)),
        ((1, 3, 5, 8), (1, 3, 7, 8), (2, 3, 7, 6)),
    ],
    ids=str,
)
def test_batches_and_heads_are_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    check(some(*shapes))
    check(some(*shapes), is_causal=True, scale=0.3)


@pytest.mark.parametrize("mask", [(7,), (5, 1), (3, 1, 7), (4, 1, 5, 7), (2, 1, 1, 1, 7), (4, 3, 1, 7)], ids=str)
def test_masks_are_broadcast(mask: tuple[int, ...]) -> None:
    check(some((2, 1, 3, 5, 8), (4, 3, 7, 8), (4, 3, 7, 8), mask))


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 8, 5, 8), (2, 2, 7, 8), (2, 4, 7, 8)),
        ((2, 8, 5, 8), (1, 2, 7, 8), (2, 8, 7, 8)),
        ((8, 5, 8),) + ((4, 7, 8),) * 2,
    ],
    ids=str,
)
def test_heads_are_shared_as_in_torch(shapes: tuple[tuple[int, ...], ...]) -> None:
    check(some(*shapes), enable_gqa=True)


def test_strided_and_expanded_operands_are_copied_where_kernels_need_it(caplog: pytest.LogCaptureFixture) -> None:
    columns = torch.randn(2, 3, 8, 5).mT
    stepped = torch.randn(2, 3, 7, 16)[..., ::2]
    rows = torch.randn(2, 3, 1, 8).expand(2, 3, 7, 8)
    with caplog.at_level(logging.DEBUG, "kernelwright.torch"):
        check([one.requires_grad_() for one in (columns, stepped, rows)])
    assert [message.split(" is copied")[0].split()[0] for message in caplog.messages] == ["query", "key", "value"]
    assert "last dimension is not contiguous" in caplog.messages[0] and "all rows are one" in caplog.messages[2]
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "kernelwright.torch"):
        batch = torch.randn(1, 1, 7, 8).expand(2, 3, 7, 8)
        check([*some((2, 3, 5, 8)), batch.requires_grad_(), batch])
    assert not caplog.messages  # kernels have strides of batches and heads
    with caplog.at_level(logging.DEBUG, "kernelwright.torch"):
        check(some((2, 3, 1, 5, 8), (1, 3, 1, 7, 8), (2, 3, 1, 7, 8)))
    assert ["key (2, 3, 1, 7, 8)" in message for message in caplog.messages] == [True]  # batches that are no one stride


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 3, 5, 8), (0, 3, 7, 8), (0, 3, 7, 8)),
        ((2, 0, 5, 8), (2, 0, 7, 8), (2, 0, 7, 8)),
        ((2, 3, 0, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
        ((2, 3, 5, 8), (2, 3, 0, 8), (2, 3, 0, 8)),
        ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 0)),
        ((0, 5, 8), (0, 7, 8), (0, 7, 8)),
        ((3, 0, 2, 5, 8), (3, 0, 2, 7, 8), (3, 0, 2, 7, 8)),
    ],
    ids=str,
)
def test_empty_operands(shapes: tuple[tuple[int, ...], ...]) -> None:
    check(some(*shapes))
    _, lse = scaled_dot_product_attention(*some(*shapes[:2], shapes[1]), return_lse=True)
    assert lse.shape == shapes[0][:-1]


def test_dropout_of_everything() -> None:
    check(some((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)), dropout_p=1.0)
    q, k, v = some((5, 4, 8), (5, 4, 8), (5, 4, 8))
    output = varlen_attn(q, k, v, STARTS, STARTS, 3, 3, dropout_p=1.0)
    assert (output == 0).all() and all((one == 0).all() for one in torch.autograd.grad(output.sum(), (q, k, v)))


def test_autocast_leaves_float64_and_numbers_that_are_no_floats() -> None:
    q, k, v = (one.double() for one in some((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)))
    mask = torch.randn(5, 7, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        for given, name in (((q, k, v), "query"), ((q.float(), k.float(), v.float(), mask), "attn_mask")):
            with pytest.raises(KernelwrightError, match=rf"^{name} is torch.float64, .*; allowed: .*; pass {name}\.to"):
                scaled_dot_product_attention(*given)
        with pytest.raises(KernelwrightError, match=r"^query is torch.float64"):
            varlen_attn(q[0], k[0], v[0], STARTS, STARTS, 3, 3)


Q, K, V = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
NO_NUMBER: dict[str, Any] = {"dropout_p": "a"}
REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "array": (
        lambda: scaled_dot_product_attention(Q.numpy(), K, V),
        r"query is a numpy.ndarray; .* pass torch.from_nu",
    ),
    "array as a mask": (
        lambda: scaled_dot_product_attention(Q, K, V, np.ones((5, 7))),
        r"attn_mask is a numpy.ndarray",
    ),
    "list": (
        lambda: scaled_dot_product_attention(Q, [1], V),
        r"key is a builtins.list; .* pass torch.as_tensor\(key\)",
    ),
    "float64": (lambda: scaled_dot_product_attention(Q, K, V.double()), r"value is torch.float64.*pass value.to"),
    "sparse": (lambda: scaled_dot_product_attention(Q.to_sparse(), K, V), r"query is a tensor of layout torch.sparse"),
    "two dtypes": (lambda: scaled_dot_product_attention(Q, K.half(), V), r"query is torch.float32, key torch.float16"),
    "one dimension": (
        lambda: scaled_dot_product_attention(Q[0, 0, 0], K, V),
        r"shapes \(8,\), .*; pass two dimensions",
    ),
    "head dimensions": (
        lambda: scaled_dot_product_attention(Q, K[..., :7], V),
        r"head dimension 8 and key 7; .* pass ",
    ),
    "keys": (lambda: scaled_dot_product_attention(Q, K, V[:, :, :6]), r"key has 7 rows and value 6; .* pass a value"),
    "heads": (
        lambda: scaled_dot_product_attention(Q, K[:, :2], V[:, :2]),
        r"query has 3 heads and key 2; pass enable_",
    ),
    "gqa": (
        lambda: scaled_dot_product_attention(Q, K[:, :2], V, enable_gqa=True),
        r"key 2; allowed with enable_gqa: a",
    ),
    "batches": (lambda: scaled_dot_product_attention(Q, K[[0, 1, 0]], V), r"allowed: batches and heads that are equal"),
    "integer mask": (
        lambda: scaled_dot_product_attention(Q, K, V, torch.ones(5, 7, dtype=torch.int32)),
        r"attn_mask is torch.int32; allowed: torch.bool, .*: torch.float32; pass attn_mask.bool\(\) or",
    ),
    "half mask": (
        lambda: scaled_dot_product_attention(Q, K, V, torch.ones(5, 7).half()),
        r"attn_mask is torch.float16",
    ),
    "scalar mask": (
        lambda: scaled_dot_product_attention(Q, K, V, torch.tensor(1.0)),
        r"attn_mask has shape \(\); allow",
    ),
    "wide mask": (
        lambda: scaled_dot_product_attention(Q, K, V, torch.ones(1, 1, 1, 5, 7)),
        r"of 1 to 4 dimensions; pa",
    ),
    "narrow mask": (
        lambda: scaled_dot_product_attention(Q, K, V, torch.ones(5, 6)),
        r"attn_mask has shape \(5, 6\); al",
    ),
    "mask and is_causal": (
        lambda: scaled_dot_product_attention(Q, K, V, torch.ones(5, 7) > 0, is_causal=True),
        r"both is_causal and attn_mask are given; allowed: one of them, .* pass mask='top_left'",
    ),
    "dropout": (
        lambda: scaled_dot_product_attention(Q, K, V, dropout_p=1.5),
        r"dropout_p is 1.5; allowed: from 0 to 1",
    ),
    "no number": (
        lambda: scaled_dot_product_attention(Q, K, V, **NO_NUMBER),
        r"dropout_p is 'a'; allowed: a real nu",
    ),
    "lengths": (
        lambda: varlen_attn(Q, K, V, STARTS, STARTS, 3, 3),
        r"query has shape \(2, 3, 5, 8\); allowed: \(rows ",
    ),
    "starts": (
        lambda: varlen_attn(Q[0], K[0], V[0], [0, 5], STARTS, 3, 3),
        r"cu_seq_q is a builtins.list; allowed: a ",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    call, words = REFUSALS[name]
    with pytest.raises(KernelwrightError, match=words):
        call()


def test_a_mask_and_a_causal_one_by_name_are_both_applied() -> None:
    hidden = torch.rand(5, 7) < 0.3
    hidden[:, 0] = False
    mask = torch.zeros(5, 7).masked_fill(hidden, -torch.inf)
    actual = scaled_dot_product_attention(Q, K, V, mask, mask="top_left")
    wanted = torch.nn.functional.scaled_dot_product_attention(
        Q, K, V, mask.masked_fill(~torch.ones(5, 7).bool().tril(), -torch.inf)
    )
    torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=1e-5)

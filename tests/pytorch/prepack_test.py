"""Packed weights of linear layers: same results, packed again after a change, within a limit of memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import kernelwright.torch
from kernelwright.dispatch import ProblemError
from kernelwright.torch import linear, prepack, prepacked
from kernelwright.torch.testdata import references

ROUNDING = {torch.float32: 2.0**-20, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6}
MIB = 1 << 20


@pytest.fixture(autouse=True)
def packing() -> Iterator[None]:
    prepack(64 * MIB)
    with torch.no_grad():
        yield
    prepack(0)


def layer(n: int, k: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n, k).to(dtype), torch.randn(n).to(dtype)


def check(x: torch.Tensor, weight: torch.Tensor, bias: Any = None, activation: str | None = None) -> None:
    """The result is that of float64, within the rounding of the dtype."""
    wide = torch.nn.functional.linear(x.double(), weight.double(), None if bias is None else bias.double())
    if activation is not None:
        wide = references.ACTIVATIONS[activation](wide)
    for _ in range(2):  # the first call only notes the weight
        result = linear(x, weight, bias, activation=activation)
    assert result.dtype == x.dtype and result.shape == wide.shape
    scale = (x.double().abs() @ weight.double().abs().T).max()
    assert ((result.double() - wide).abs() <= ROUNDING[x.dtype] * scale).all()


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("rows", [8, 13, 64, 300])
@pytest.mark.parametrize(("n", "k"), [(96, 64), (131, 77), (1, 40)])
def test_results_are_right(dtype: torch.dtype, rows: int, n: int, k: int) -> None:
    weight, bias = layer(n, k, dtype)
    x = torch.randn(rows, k).to(dtype)
    check(x, weight)
    check(x, weight, bias, "relu")
    assert prepacked().weights == 1  # one copy serves both


@pytest.mark.parametrize("activation", references.ACTIVATIONS)
def test_every_activation_is_fused(activation: str) -> None:
    weight, bias = layer(96, 64)
    check(torch.randn(2, 10, 64), weight, bias, activation)
    assert prepacked().weights == 1


def test_rows_are_read_where_they_lie() -> None:
    weight, _ = layer(96, 64)
    check(torch.randn(64, 20).T, weight)
    check(torch.randn(40, 128)[::2, 32:96], weight)
    check(torch.randn(3, 5, 2, 64), weight)


def test_a_changed_weight_is_packed_again() -> None:
    weight, _ = layer(96, 64)
    x = torch.randn(16, 64)
    check(x, weight)
    weight.mul_(2)
    check(x, weight)
    weight[3] = 7
    check(x, weight)
    parameter = torch.nn.Parameter(weight)
    check(x, parameter)
    torch.optim.SGD([parameter], lr=1.0).step()
    parameter.copy_(torch.randn(96, 64))
    check(x, parameter)
    parameter.data = torch.randn(96, 64)  # another place in memory
    check(x, parameter)


def test_views_that_are_new_in_each_call_are_not_packed() -> None:
    weights, x = torch.randn(192, 64), torch.randn(16, 64)
    for _ in range(3):
        linear(x, weights[:96])
        linear(x, weights[96:])
    gc.collect()
    assert prepacked() == kernelwright.torch.Prepacked(0, 0, 64 * MIB) and not kernelwright.torch.prepacking.STORE.kept


@pytest.mark.parametrize("rows", [1, 7, 1024])
def test_other_numbers_of_rows_read_the_weight_as_it_is(rows: int) -> None:
    weight, bias = layer(32, 16)
    check(torch.randn(rows, 16), weight, bias)
    assert prepacked().weights == 0


def test_calls_that_record_gradients_pack_nothing() -> None:
    weight = torch.nn.Parameter(torch.randn(96, 64))
    x = torch.randn(16, 64)
    with torch.enable_grad():
        linear(x, weight).sum().backward()
    assert prepacked().weights == 0 and weight.grad is not None
    torch.testing.assert_close(weight.grad, x.sum(0).expand(96, 64))


def test_autocast_and_compiled_graphs_pack_nothing() -> None:
    weight, bias = layer(96, 64)
    x = torch.randn(16, 64)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    torch.compile(linear, backend="eager")(x, weight, bias)
    with torch.inference_mode():
        linear(x, torch.randn(96, 64))  # such tensors do not say whether they have changed
    assert prepacked().weights == 0


def test_the_least_recently_used_makes_room() -> None:
    x, weights = torch.randn(16, 256), [torch.randn(256, 256) for _ in range(3)]
    check(x, weights[0])
    one = prepacked().bytes
    assert one >= 256 * 256 * 4
    prepack(2 * one)
    for number in (0, 1, 0, 2):
        check(x, weights[number])
    assert (prepacked().weights, prepacked().bytes) == (2, 2 * one)
    kept = {id(entry.of()) for entry in kernelwright.torch.prepacking.STORE.kept.values()}
    assert kept == {id(weights[0]), id(weights[2])}
    prepack(one - 1)
    check(x, weights[0])
    assert prepacked() == kernelwright.torch.Prepacked(0, 0, one - 1)


def test_a_weight_that_is_gone_takes_no_memory() -> None:
    check(torch.randn(16, 64), torch.randn(96, 64))
    gc.collect()
    assert prepacked() == kernelwright.torch.Prepacked(0, 0, 64 * MIB)


def test_zero_frees_what_is_kept_and_packs_nothing() -> None:
    weight, _ = layer(96, 64)
    check(torch.randn(16, 64), weight)
    assert prepacked().bytes > 0
    prepack(0)
    check(torch.randn(16, 64), weight)
    assert prepacked() == kernelwright.torch.Prepacked(0, 0, 0)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "1 GiB", None])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(ProblemError, match=r"limit_bytes is .*; allowed: integers of 0 or more"):
        prepack(limit)


@pytest.mark.parametrize(
    ("x", "weight", "bias", "activation"),
    [
        (torch.ones(16, 63), torch.ones(96, 64), None, None),
        (torch.ones(16, 64), torch.ones(96, 64).double(), None, None),
        (torch.ones(16, 64), torch.ones(96, 64), torch.ones(95), None),
        (torch.ones(16, 64), torch.ones(96, 64), None, "gelo"),
        (torch.ones(16, 64), "weight", None, None),
    ],
)
def test_wrong_calls_fail_as_without_packing(x: Any, weight: Any, bias: Any, activation: Any) -> None:
    errors = []
    for limit in (64 * MIB, 0):
        prepack(limit)
        with pytest.raises(Exception) as caught:
            linear(x, weight, bias, activation=activation)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_threads_share_what_is_packed() -> None:
    weights, x = [torch.randn(256, 256) for _ in range(4)], torch.randn(16, 256)
    check(x, weights[0])
    prepack(2 * prepacked().bytes)  # they take each other's place
    exact = [x @ weight.T for weight in weights]

    def work(number: int) -> bool:
        return all(torch.allclose(linear(x, weights[number]), exact[number], atol=1e-3) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_an_adopted_model_packs_its_weights() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 32)).eval()
    x = torch.randn(24, 64)
    exact = model(x)
    kernelwright.torch.adopt(model)
    for _ in range(2):
        torch.testing.assert_close(model(x), exact, atol=1e-4, rtol=1e-4)
    assert prepacked().weights == 2

"""Products, convolutions and attention on the native road: what ``native_road_test.py`` asks of layers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from kernelwright.dispatch import ArrayError, Dispatcher, KernelwrightError, NoKernelError, record
from kernelwright.torch import (
    conv2d,
    gemm,
    reset_report,
    scaled_dot_product_attention,
    use,
)
from kernelwright.torch.road import ROAD
from pytorch.native_cases import BASIC, CASES, COPIED, NOT_RECORDED, Case, attended, close, lenient, native

LAST = torch.channels_last


@pytest.fixture(autouse=True)
def counts() -> Iterator[None]:
    reset_report()
    yield


each = pytest.mark.parametrize("name", CASES)
basic = pytest.mark.parametrize("name", BASIC)


@each
def test_results_are_those_of_the_python_road(name: str) -> None:
    case = CASES[name]
    strides = set()
    for repeat in range(4):
        given = case.operands()
        result = case.ours(*given)
        close(result, case.torchs(*given))
        strides.add((result.shape, result.stride(), result.requires_grad))
        assert native(case.operator) == repeat
    assert len(strides) == 1


@pytest.mark.parametrize("name", COPIED)
def test_what_is_copied_takes_the_python_road(name: str) -> None:
    case = COPIED[name]
    for _ in range(3):
        given = case.operands()
        close(case.ours(*given), case.torchs(*given))
    assert native(case.operator) == 0


@pytest.mark.parametrize("name", NOT_RECORDED)
def test_attention_of_other_dimensions_is_native_without_gradients(name: str) -> None:
    case = Case("attention", scaled_dot_product_attention, attended, NOT_RECORDED[name])
    for grad, expected in ((False, 1), (True, 1)):
        for _ in range(2):
            given = case.operands(grad)
            close(case.ours(*given), case.torchs(*given))
        assert native("attention") == expected


@basic
def test_modes_and_transforms_take_the_python_road(name: str) -> None:
    case = CASES[name]
    first, *rest = case.operands()
    for _ in range(2):
        wanted = case.ours(first, *rest)
    before = native(case.operator)
    assert before == 1
    with torch.inference_mode():
        close(case.ours(first, *rest), wanted)
    assert native(case.operator) == before + 1

    def run(one: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = case.ours(one, *rest)
        return result

    two = torch.stack([first, first])
    close(torch.vmap(run)(two)[1], wanted)
    _, pulled = torch.func.vjp(run, first)
    learned = first.clone().requires_grad_()
    close(pulled(wanted)[0], torch.autograd.grad(case.torchs(learned, *rest), learned, wanted)[0])
    with lenient():
        close(torch.func.jvp(run, (first,), (first,))[0], wanted)
    with torch._subclasses.FakeTensorMode() as mode:
        fakes = [mode.from_tensor(one) for one in (first, *rest)]
        assert case.ours(*fakes).shape == wanted.shape
    close(torch.compile(run, fullgraph=True, backend="aot_eager")(first), wanted)
    exported = torch.export.export(_Module(run), (first,))
    close(exported.module()(first), wanted)
    assert native(case.operator) == before + 1


class _Module(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, run: Any) -> None:
        super().__init__()
        self.run = run

    def forward(self, one: torch.Tensor) -> Any:
        return self.run(one)


@basic
def test_autocast_casts(name: str) -> None:
    case = CASES[name]
    given = case.operands()
    for _ in range(2):
        case.ours(*given)
    with torch.autocast("cpu", torch.bfloat16), lenient():
        assert case.ours(*given).dtype == torch.bfloat16
    assert case.ours(*given).dtype == torch.float32


class Scaled(torch.Tensor):
    """A subclass that sees every function of torch, and counts them."""

    seen = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen += 1
        return super().__torch_function__(func, types, args, kwargs)


@basic
def test_subclasses_are_kept(name: str) -> None:
    case = CASES[name]
    first, *rest = case.operands()
    for _ in range(2):
        wanted = case.ours(first, *rest)
    result = case.ours(first.as_subclass(Scaled), *rest)
    assert type(result) is Scaled and Scaled.seen > 0
    close(result.as_subclass(torch.Tensor), wanted)


@basic
def test_a_dtype_that_no_kernel_has_is_torchs_or_refused(name: str) -> None:
    case = CASES[name]
    for _ in range(2):
        case.ours(*case.operands())
        with pytest.raises(NoKernelError):
            case.ours(*case.operands(dtype=torch.float64))
        with lenient():
            given = case.operands(dtype=torch.float64)
            assert torch.equal(case.ours(*given), case.torchs(*given))


@basic
def test_what_is_no_tensor_is_refused(name: str) -> None:
    case = CASES[name]
    for _ in range(2):
        first, *rest = case.operands()
        case.ours(first, *rest)
        with pytest.raises(ArrayError, match="allowed: a torch"):
            case.ours(first.numpy(), *rest)


@pytest.mark.parametrize(
    "wrong",
    [{"stride": True}, {"stride": 1.0}, {"padding": (0, False)}, {"dilation": [1, 1.0]}, {"groups": True}],
    ids=str,
)
def test_numbers_that_equal_known_ones_are_refused_as_before(wrong: dict[str, Any]) -> None:
    x, w = CASES["conv2d"].operands()
    for options in ({}, {"padding": (0, 0)}):
        for _ in range(2):
            conv2d(x, w, **options)  # type: ignore[arg-type]
    assert native("conv") == 2
    with pytest.raises(ArrayError, match=next(iter(wrong))):
        conv2d(x, w, **wrong)


def test_alpha_is_told_apart() -> None:
    a, b = CASES["gemm"].operands()
    for alpha in (1.0, 2.0, 0.0, -0.0):
        for _ in range(2):
            result = gemm(a, b, alpha=alpha)
            close(result, alpha * (a @ b))
    for number in range(5000):
        gemm(a[:1, :1], b[:1, :1], alpha=1.0 + number)
    close(gemm(a, b, alpha=7.5), 7.5 * (a @ b))  # more options than are remembered


def test_lists_and_tuples_of_a_window() -> None:
    x, w = CASES["conv2d"].operands()
    for window in ((1, 2), [1, 2]):
        for _ in range(2):
            result = conv2d(x, w, stride=window, padding=window)
            close(result, functional.conv2d(x, w, stride=window, padding=window))
    assert native("conv") == 1


def test_every_memory_format_gives_the_same_result() -> None:
    x, w = torch.randn(2, 8, 9, 7), torch.randn(6, 8, 3, 3)
    wanted = functional.conv2d(x, w)
    views = (x, x.to(memory_format=LAST), torch.randn(2, 12, 9, 7).to(memory_format=LAST)[:, :8].copy_(x))
    for one in views:
        for weights in (w, w.to(memory_format=LAST)):
            for _ in range(3):
                result = conv2d(one, weights)
                close(result, wanted)
                assert result.is_contiguous(memory_format=LAST)
    assert native("conv") > 0


def test_dropout_and_features_of_our_own_take_the_python_road() -> None:
    q, k, v = CASES["attention"].operands()
    for _ in range(2):
        scaled_dot_product_attention(q, k, v)
    assert native("attention") == 1
    for options in ({"dropout_p": 1.0}, {"soft_cap": 5.0}, {"window": (2, 0), "mask": "top_left"}):
        with lenient():
            scaled_dot_product_attention(q, k, v, **options)  # type: ignore[arg-type]
    assert native("attention") == 1
    with pytest.raises(KernelwrightError, match="is_causal and attn_mask"):
        scaled_dot_product_attention(q, k, v, torch.zeros(5, 5), is_causal=True)


@basic
def test_another_dispatcher_is_asked_anew(name: str, dispatcher: Dispatcher) -> None:
    case = CASES[name]
    given = case.operands()
    for _ in range(3):
        case.ours(*given)
    assert native(case.operator) == 2
    use(dispatcher)
    case.ours(*given)
    assert native(case.operator) == 2
    case.ours(*given)
    assert native(case.operator) == 3


@basic
def test_recorders_count_every_call(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    given = case.operands()
    for _ in range(2):
        case.ours(*given)
    before = native(case.operator)
    with record(tmp_path / "trace.json"):
        for _ in range(3):
            case.ours(*given)
    assert native(case.operator) == before
    assert sum(map(int, re.findall(r'"count": (\d+)', (tmp_path / "trace.json").read_text()))) == 3


@basic
def test_children_of_a_fork_launch_and_forget(name: str) -> None:
    case = CASES[name]
    given = case.operands()
    wanted = case.torchs(*given)
    for _ in range(2):
        case.ours(*given)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            right = [torch.allclose(case.ours(*given), wanted, atol=1e-3) for _ in range(2)]
            ROAD.forget()
            right.append(torch.allclose(case.ours(*given), wanted, atol=1e-3))
            code = 0 if all(right) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

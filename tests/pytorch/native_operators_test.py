"""Products, convolutions and attention on the native road: what ``native_road_test.py`` asks of layers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn import functional

from kernelwright.dispatch import ArrayError, Dispatcher, KernelwrightError, NoKernelError, record
from kernelwright.torch import (
    conv1d,
    conv2d,
    conv3d,
    gemm,
    report,
    reset_report,
    scaled_dot_product_attention,
    use,
)
from kernelwright.torch.fallback.strictness import STRICTNESS
from kernelwright.torch.road import ROAD

Tensors = tuple[torch.Tensor, ...]
LAST = torch.channels_last


@pytest.fixture(autouse=True)
def counts() -> Iterator[None]:
    reset_report()
    yield


@contextmanager
def lenient() -> Iterator[None]:
    """Where torch may compute what no kernel serves, in the middle of strict tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(STRICTNESS, "on", False)
        yield


class Case(NamedTuple):
    """An operator beside torch's, with operands of these shapes."""

    operator: str
    ours: Callable[..., Any]
    torchs: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]

    def operands(self, grad: bool = False, dtype: torch.dtype = torch.float32) -> Tensors:
        made = [torch.randn(shape, dtype=dtype) for shape in self.shapes]
        if self.operator == "conv":
            dims = len(self.shapes[1])
            made = [innermost(one) if one.dim() in (1, dims) else innermost(one[None])[0] for one in made]
        return tuple(one.requires_grad_(grad) for one in made)


def innermost(one: torch.Tensor) -> torch.Tensor:
    return one.movedim(1, -1).contiguous().movedim(-1, 1) if one.dim() > 2 else one


def attended(*given: Any, **options: Any) -> Any:
    return functional.scaled_dot_product_attention(*given, **options)


def masked(call: Any) -> Any:
    return lambda q, k, v, mask: call(q, k, v, mask)


CASES: dict[str, Case] = {
    "gemm": Case("gemm", gemm, torch.matmul, ((5, 64), (64, 48))),
    "gemm of a batch": Case("gemm", gemm, torch.matmul, ((3, 5, 64), (3, 64, 48))),
    "gemm of rows": Case("gemm", gemm, torch.matmul, ((2, 3, 5, 64), (64, 48))),
    "gemm of a row": Case("gemm", gemm, torch.matmul, ((64,), (64, 48))),
    "gemm with a bias": Case(
        "gemm", lambda a, b, d: gemm(a, b, ds=[d]), lambda a, b, d: a @ b + d, ((5, 64), (64, 48), (48,))
    ),
    "gemm with a residual and relu": Case(
        "gemm", lambda a, b, d: gemm(a, b, ds=[d], activation="relu"), lambda a, b, d: torch.relu(a @ b + d),
        ((5, 64), (64, 48), (5, 48)),
    ),
    "gemm with a factor": Case(
        "gemm", lambda a, b, d: gemm(a, b, ds=[d], d_op="multiply", alpha=0.5), lambda a, b, d: 0.5 * (a @ b) * d,
        ((5, 64), (64, 48), (5, 48)),
    ),
    "conv1d": Case("conv", conv1d, functional.conv1d, ((2, 8, 9), (6, 8, 3))),
    "conv2d": Case(
        "conv", lambda x, w: conv2d(x, w, stride=2, padding=(1, 0)),
        lambda x, w: functional.conv2d(x, w, stride=2, padding=(1, 0)), ((2, 8, 9, 7), (6, 8, 3, 3)),
    ),
    "conv2d of one image": Case(
        "conv", lambda x, w, b: conv2d(x, w, b, padding="same"),
        lambda x, w, b: functional.conv2d(x, w, b, padding="same"), ((8, 9, 7), (6, 8, 3, 3), (6,)),
    ),
    "conv2d in groups": Case(
        "conv", lambda x, w: conv2d(x, w, groups=2), lambda x, w: functional.conv2d(x, w, groups=2),
        ((2, 8, 9, 7), (6, 4, 3, 3)),
    ),
    "conv2d with bias and relu": Case(
        "conv", lambda x, w, b: conv2d(x, w, b, activation="relu"),
        lambda x, w, b: torch.relu(functional.conv2d(x, w, b)), ((2, 8, 9, 7), (6, 8, 3, 3), (6,)),
    ),
    "conv2d with a residual": Case(
        "conv", lambda x, w, r: conv2d(x, w, residual=r), lambda x, w, r: functional.conv2d(x, w) + r,
        ((2, 8, 9, 7), (6, 8, 3, 3), (2, 6, 7, 5)),
    ),
    "conv2d with bias, residual and relu": Case(
        "conv", lambda x, w, b, r: conv2d(x, w, b, residual=r, activation="relu"),
        lambda x, w, b, r: torch.relu(functional.conv2d(x, w, b) + r),
        ((2, 8, 9, 7), (6, 8, 3, 3), (6,), (2, 6, 7, 5)),
    ),
    "conv3d": Case("conv", conv3d, functional.conv3d, ((1, 4, 5, 6, 7), (3, 4, 2, 2, 2))),
    "attention": Case("attention", scaled_dot_product_attention, attended, ((2, 3, 5, 32),) * 3),
    "causal attention": Case(
        "attention", lambda *qkv: scaled_dot_product_attention(*qkv, is_causal=True, scale=0.25),
        lambda *qkv: attended(*qkv, is_causal=True, scale=0.25), ((2, 3, 5, 32),) * 3,
    ),
    "attention of shared heads": Case(
        "attention", lambda *qkv: scaled_dot_product_attention(*qkv, enable_gqa=True),
        lambda *qkv: attended(*qkv, enable_gqa=True), ((2, 4, 5, 32), (2, 2, 7, 32), (2, 2, 7, 32)),
    ),
    "attention with a mask": Case(
        "attention", masked(scaled_dot_product_attention), masked(attended),
        (*((2, 3, 5, 32),) * 3, (1, 1, 5, 5)),
    ),
}  # fmt: skip
KEEPS_RESULT = re.compile("attention|relu")  # for the gradient, as torch does
COPIED: dict[str, Case] = {
    "gemm of broadcast batches": Case("gemm", gemm, torch.matmul, ((2, 1, 5, 64), (3, 64, 48))),
    "attention with a boolean mask": Case(
        "attention", lambda q, k, v: scaled_dot_product_attention(q, k, v, torch.ones(5, 5, dtype=torch.bool)),
        attended, ((2, 3, 5, 32),) * 3,
    ),
    "contiguous images": Case("conv", lambda x, w: conv2d(x.contiguous(), w), functional.conv2d,
                              ((2, 8, 9, 7), (6, 8, 3, 3))),
}  # fmt: skip
NOT_RECORDED = {"attention of one head": ((5, 32),) * 3, "attention of five dimensions": ((2, 1, 3, 5, 32),) * 3}
BASIC = ("gemm", "conv2d", "attention")
each = pytest.mark.parametrize("name", CASES)
basic = pytest.mark.parametrize("name", BASIC)


def native(operator: str) -> int:
    return sum(one.native for one in report().operators if one.operator == operator)


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


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


@each
def test_gradients(name: str) -> None:
    case = CASES[name]
    for at in (*range(len(case.shapes)), None):
        given = case.operands()
        for number, one in enumerate(given):
            one.requires_grad_(at in (number, None))
        case.ours(*given)  # is learned
        before = native(case.operator)
        result = case.ours(*given)
        assert native(case.operator) == before + 1 and result.requires_grad
        if not KEEPS_RESULT.search(name):
            result.add_(1.0)  # no view of a function's input
        factor = torch.randn(result.shape)
        required = [one for one in given if one.requires_grad]
        found = torch.autograd.grad(result, required, factor)
        wanted = torch.autograd.grad(case.torchs(*given), required, factor)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh"])
@pytest.mark.parametrize("operator", ["gemm", "conv"])
def test_gradients_with_activations(operator: str, activation: str) -> None:
    torchs = getattr(functional, activation, torch.tanh)
    if operator == "gemm":
        case = Case(
            "gemm", lambda a, b, d: gemm(a, b, ds=[d], activation=activation), lambda a, b, d: torchs(a @ b + d),
            ((5, 64), (64, 48), (48,)),
        )  # fmt: skip
    else:
        case = Case(
            "conv", lambda x, w, b: conv2d(x, w, b, activation=activation),
            lambda x, w, b: torchs(functional.conv2d(x, w, b)), ((2, 8, 9, 7), (6, 8, 3, 3), (6,)),
        )  # fmt: skip
    with lenient():
        case.ours(*case.operands(grad=True))
        given = case.operands(grad=True)
        result = case.ours(*given)
        factor = torch.randn(result.shape)
        found = torch.autograd.grad(result, given, factor)
    for one, other in zip(found, torch.autograd.grad(case.torchs(*given), given, factor), strict=True):
        close(one, other)


@pytest.mark.parametrize(
    "name", ["gemm", "gemm with a residual and relu", "gemm of rows", "conv2d", "conv2d of one image"]
)
def test_second_derivatives(name: str) -> None:
    case = CASES[name]
    given = case.operands(grad=True)
    case.ours(*given)

    def penalty(run: Any) -> Any:
        (first,) = torch.autograd.grad((run(*given) ** 2).sum(), given[0], create_graph=True)
        return torch.autograd.grad((first**2).sum(), given[:2])

    for one, other in zip(penalty(case.ours), penalty(case.torchs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))
    assert native(case.operator) >= 1


@basic
def test_only_what_a_gradient_needs_is_saved(name: str) -> None:
    case = CASES[name]
    first, *rest = case.operands()
    first.requires_grad_()
    case.ours(first, *rest)
    saved: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: saved.append(one) or one, lambda one: one):
        case.ours(first, *rest)
    assert native(case.operator) == 1
    if case.operator != "attention":  # whose gradients need everything
        assert [one.data_ptr() for one in saved] == [rest[0].data_ptr()]


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

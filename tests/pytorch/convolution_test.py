"""Results and gradients of convolutions of ``kernelwright.torch`` by real CPU kernels, against float64."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from kernelwright.dispatch import Dispatcher, KernelwrightError
from kernelwright.torch import TransformError, conv1d, conv2d, conv3d, dispatchers
from kernelwright.torch.operators import convolution, convolution_gradient
from kernelwright.torch.testdata.references import ACTIVATIONS

# What no result is asked to be closer than; of fp32 it is the error of sums of some hundred terms.
ROUNDING = {torch.float32: 2.0**-21, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
OURS = {1: conv1d, 2: conv2d, 3: conv3d}
TORCHS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
FORMATS = {1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d}

# Shapes of x and w, and the rest of the call.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 12, 9, 10), (16, 12, 3, 3), {"padding": 1}),
    "1x1": ((1, 16, 7, 7), (8, 16, 1, 1), {}),
    "strides": ((2, 6, 12, 13), (10, 6, 3, 2), {"stride": (2, 3), "padding": (0, 1)}),
    "dilation": ((1, 5, 14, 11), (3, 5, 3, 3), {"dilation": (2, 1), "padding": "valid"}),
    "same": ((2, 8, 9, 10), (8, 8, 5, 3), {"padding": "same", "dilation": (1, 2)}),
    "groups": ((2, 12, 9, 10), (9, 4, 3, 2), {"groups": 3, "padding": 1}),
    "depthwise": ((1, 24, 12, 12), (24, 1, 3, 3), {"groups": 24, "padding": 1, "stride": 2}),
    "no images": ((0, 4, 6, 6), (4, 4, 3, 3), {}),
    "no images, 1x1": ((0, 6, 6, 6), (12, 2, 1, 1), {"groups": 3}),
    "1D": ((2, 6, 20), (8, 3, 3), {"groups": 2, "padding": "same", "dilation": 2}),
    "1D, strides": ((1, 5, 21), (4, 5, 4), {"stride": 3, "padding": 1}),
    "3D": ((1, 6, 4, 8, 9), (8, 3, 2, 3, 3), {"groups": 2, "padding": (0, 1, 1), "stride": (1, 2, 1)}),
}


def tensors(name: str, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    x, w, _ = CASES[name]
    return [torch.randn(shape).to(dtype, memory_format=FORMATS[len(x) - 2]).requires_grad_() for shape in (x, w)]


def by_torch(operands: list[Any], options: dict[str, Any], activation: str = "none") -> torch.Tensor:
    x, w, bias, residual = (*operands, None, None)[:4]
    y = TORCHS[x.dim() - 2](x, w, bias, **options)
    return ACTIVATIONS[activation](y if residual is None else y + residual)


def by_kernel(operands: list[Any], options: dict[str, Any], activation: str = "none") -> torch.Tensor:
    x, w, bias, residual = (*operands, None, None)[:4]
    return OURS[x.dim() - 2](x, w, bias, residual=residual, activation=activation, **options)


def error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    return float((actual.double() - exact).norm() / exact.norm().clamp_min(1e-300)) if exact.numel() else 0.0


def check(operands: list[Any], options: dict[str, Any], activation: str = "none") -> None:
    """Results and gradients have at most twice the error of torch's own in the same precision."""
    wide = [one if one is None else one.detach().double().requires_grad_() for one in operands]
    exact = by_torch(wide, options, activation)
    weights, outcomes = torch.randn(exact.shape), []
    for convolve, given in ((by_kernel, operands), (by_torch, operands), (by_torch, wide)):
        result = convolve(given, options, activation)
        inputs = [one for one in given if one is not None]
        grads = torch.autograd.grad((result * weights.to(result.dtype)).sum(), inputs)
        outcomes.append([result.detach(), *grads])
    for number, (one, plain, wanted) in enumerate(zip(*outcomes, strict=True)):
        assert one.shape == plain.shape and one.dtype == plain.dtype
        allowed = max(2 * error(plain, wanted), ROUNDING[one.dtype])
        assert error(one, wanted) <= allowed, f"number {number}: {error(one, wanted):.3g}; allowed: {allowed:.3g}"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_results_and_gradients(name: str, dtype: torch.dtype) -> None:
    check(tensors(name, dtype), CASES[name][2])


def test_a_bias() -> None:
    check([*tensors("strides"), torch.randn(10, requires_grad=True)], CASES["strides"][2])
    check([*tensors("3D"), torch.randn(8, requires_grad=True)], CASES["3D"][2])


@pytest.mark.parametrize(("activation", "bias", "residual"), [
    ("relu", True, False), ("relu", True, True), ("gelu", False, False), ("silu", True, False),
])  # fmt: skip
def test_epilogues(activation: str, bias: bool, residual: bool) -> None:
    operands: list[Any] = [*tensors("plain"), torch.randn(16, requires_grad=True) if bias else None]
    if residual:
        operands.append(torch.randn(2, 16, 9, 10, requires_grad=True))
    check(operands, CASES["plain"][2], activation)


def test_second_derivatives() -> None:
    results = []
    x, w = tensors("groups")
    bias = torch.randn(9, requires_grad=True)
    for convolve in (by_kernel, by_torch):
        y = convolve([x, w, bias], CASES["groups"][2], "relu")
        first = torch.autograd.grad(y.square().sum(), [x, w, bias], create_graph=True)
        results.append(torch.autograd.grad(sum(one.square().sum() for one in first), [x, w, bias]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-2)


def test_channels_last_tensors_are_read_where_they_lie(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    run = Dispatcher.conv_forward

    def spy(self: Dispatcher, x: Any, w: Any, out: Any, **options: Any) -> Any:
        seen.extend((x.data_ptr(), w.data_ptr()))
        return run(self, x, w, out, **options)

    monkeypatch.setattr(Dispatcher, "conv_forward", spy)
    x, w = (tensor.detach() for tensor in tensors("groups"))
    y = conv2d(x, w, padding=1, groups=3)
    assert seen == [x.data_ptr(), w.data_ptr()] and y.is_contiguous(memory_format=torch.channels_last)
    wide = torch.randn(2, 20, 9, 10).to(memory_format=torch.channels_last)[:, 4:16]
    output = conv2d(wide, w, padding=1, groups=3)
    assert seen[2] == wide.data_ptr()
    torch.testing.assert_close(output, functional.conv2d(wide, w, padding=1, groups=3))
    torch.testing.assert_close(conv2d(x.contiguous(), w.contiguous(), padding=1, groups=3), y)
    assert seen[4] != x.data_ptr()


WINDOW = ([2, 1], [1, 0], [1, 1], [1, 2], 3)
SHAPES = {"x": (2, 12, 9, 10), "w": (9, 4, 3, 2), "y": (2, 9, 5, 9)}


def some(kind: str) -> torch.Tensor:
    return torch.randn(SHAPES[kind]).to(memory_format=torch.channels_last).requires_grad_()


def test_opcheck() -> None:
    for operator, arguments in (
        (convolution.OPERATOR, (some("x"), some("w"), None, None, *WINDOW)),
        (convolution.OPERATOR, (some("x"), some("w"), torch.randn(9, requires_grad=True), some("y"), *WINDOW, "relu")),
        (convolution_gradient.DATA, (some("y"), some("w"), [9, 10], *WINDOW)),
        (convolution_gradient.WEIGHT, (some("x"), some("y"), [3, 2], *WINDOW)),
    ):
        statuses = torch.library.opcheck(operator, arguments)
        assert len(statuses) == 4 and set(statuses.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_layers_have_the_same_gradients(dynamic: bool) -> None:
    def loss(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        return conv2d(conv2d(x, w, bias, padding="same", activation="relu"), last, stride=2).square().mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for images, size in ((2, 9), (3, 12)):
        shapes = (images, 4, size, size + 1), (8, 4, 3, 3), (8,), (6, 8, 2, 2)
        operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
        expected = torch.autograd.grad(loss(*operands), operands)
        torch.testing.assert_close(torch.autograd.grad(compiled(*operands), operands), expected)


def test_exported_programs_hold_the_operator() -> None:
    class Layer(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return conv2d(x, w, padding=1)

    x, w = (tensor.detach() for tensor in tensors("plain"))
    program = torch.export.export(Layer(), (x, w))
    assert any(node.target is convolution.OPERATOR for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(x, w), functional.conv2d(x, w, padding=1))


def test_autocast_casts_operands() -> None:
    x, w = tensors("plain")
    with torch.autocast("cpu", torch.bfloat16):
        actual, expected = conv2d(x, w, padding=1), functional.conv2d(x, w, padding=1)
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)
    assert torch.autograd.grad(actual.sum(), w)[0].dtype == torch.float32


def test_forward_mode_is_refused() -> None:
    x, w = (tensor.detach() for tensor in tensors("plain"))
    with pytest.raises(TransformError, match="kernelwright::conv has no forward-mode derivative"):
        torch.func.jvp(lambda x: conv2d(x, w), (x,), (x,))
    tangent = torch.autograd.functional.jvp(lambda x: conv2d(x, w), x, x)[1]  # what the error advises
    torch.testing.assert_close(tangent, functional.conv2d(x, w))


@pytest.mark.parametrize("name", ["plain", "3D", "1D", "no images"])
def test_one_image_needs_no_batch(name: str) -> None:
    x, w = (tensor.detach() for tensor in tensors(name))
    bias, options = torch.randn(w.shape[0]), CASES[name][2]
    one = torch.randn(x.shape[1:])
    expected = TORCHS[one.dim() - 1](one, w, bias, **options)
    residual = torch.randn_like(expected)
    actual = OURS[one.dim() - 1](one, w, bias, residual=residual, activation="relu", **options)
    torch.testing.assert_close(actual, torch.relu(expected + residual))


def test_operands_are_copied_where_torch_copies(caplog: pytest.LogCaptureFixture) -> None:
    wide = torch.randn(2, 24, 9, 10).to(memory_format=torch.channels_last)
    w = torch.randn(16, 12, 3, 3).to(memory_format=torch.channels_last)
    with caplog.at_level(logging.DEBUG, "kernelwright.torch"):
        conv2d(wide[:, 4:16], w, torch.randn(16))
        assert not caplog.messages
        for x, weight, bias, names in (
            (torch.randn(1, 12, 1, 10).expand(2, 12, 9, 10), w, torch.randn(16), ["x"]),
            (wide[:, ::2], w[:, :, :, :1].expand(16, 12, 3, 3), torch.randn(1).expand(16), ["x", "w", "bias"]),
            (wide[:, :12], torch.randn(12, 16, 3, 3).transpose(0, 1), torch.randn(32)[::2], ["w", "bias"]),
        ):
            caplog.clear()
            torch.testing.assert_close(conv2d(x, weight, bias), functional.conv2d(x, weight, bias))
            told = {message.split()[0]: message for message in caplog.messages}
            assert list(told) == names
            for name, given in (("x", x), ("w", weight), ("bias", bias)):
                assert name not in told or f"with strides {given.stride()} is copied" in told[name]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"stride": 1.5}, r"stride is 1\.5; allowed: one integer, or 2; no floats, bools or text"),
    ({"stride": True}, "stride is True; allowed: one integer, or 2"),
    ({"stride": (1, 2, 3)}, r"stride is \(1, 2, 3\); allowed: one integer, or 2"),
    ({"stride": ()}, r"stride is \(\); allowed: one integer, or 2"),
    ({"stride": 0}, "stride is 0; allowed: 1 or more"),
    ({"stride": "2"}, "stride is '2'; allowed: one integer"),
    ({"padding": None}, "padding is None; allowed: one integer, or 2"),
    ({"padding": (1, 1.0)}, r"padding is \(1, 1\.0\); allowed: one integer"),
    ({"padding": -1}, "padding is -1; allowed: 0 or more"),
    ({"padding": "full"}, "padding is 'full' and stride .*; allowed: numbers, 'valid', and 'same'"),
    ({"padding": "same", "stride": 2}, r"padding is 'same' and stride \(2, 2\); allowed: numbers, 'valid', and 'same'"),
    ({"dilation": 0}, "dilation is 0; allowed: 1 or more"),
    ({"dilation": (1, -1)}, r"dilation is \(1, -1\); allowed: 1 or more"),
    ({"dilation": 8}, r"w has \(3, 3\) points and x \(9, 10\), which leaves results of \(-7, -6\); allowed: one point"),
    ({"groups": 0}, "groups is 0; allowed: 1 or more"),
    ({"groups": 1.0}, r"groups is 1\.0; allowed: one integer"),
    ({"groups": True}, "groups is True; allowed: one integer"),
    ({"groups": 2}, "c is 12, and w has 12 for each of 2 groups"),
    ({"activation": "swish"}, "activation is 'swish'; allowed: none, relu"),
    ({"activation": 1}, "activation is 1; allowed: text"),
    ({"bias": torch.zeros(1)}, r"bias has shape \(1,\); allowed: \(16,\); expand it, or leave it out"),
    (
        {"bias": torch.zeros(16).half()},
        r"bias is torch\.float16 and x torch\.float32; allowed: one dtype for all; pass",
    ),
    ({"bias": np.zeros(16)}, r"bias is a numpy\.ndarray; allowed: a torch\.Tensor"),
    ({"residual": torch.zeros(16)}, r"residual has shape \(16,\); allowed: as many dimensions as x, 4"),
    (
        {"residual": torch.zeros(2, 16, 1, 1)},
        r"residual has shape \(2, 16, 1, 1\); allowed: \(2, 16, 7, 8\); expand it",
    ),
    ({"w": torch.zeros(16, 12, 3)}, r"w has shape \(16, 12, 3\); allowed for conv2d: 4 dimensions"),
    ({"w": torch.zeros(16, 12, 0, 3)}, r"w has \(0, 3\) points"),
    ({"w": torch.zeros(0, 12, 3, 3)}, "x has 12 channels, w makes 0, groups is 1; allowed: at least one each"),
    ({"w": torch.zeros(16, 12, 3, 3).bfloat16()}, r"w is torch\.bfloat16 and x torch\.float32; .*w\.to\(x\.dtype\)"),
    ({"w": torch.zeros(16, 12, 3, 3, device="meta")}, "w is on meta and x on cpu; allowed: one device"),
    ({"x": torch.zeros(12, 12)}, r"x has shape \(12, 12\); allowed for conv2d: 4 dimensions, 3 for one"),
    (
        {"x": torch.zeros(2, 0, 9, 10), "w": torch.zeros(16, 0, 3, 3)},
        "x has 0 channels, w makes 16, groups is 1; allowed",
    ),
    ({"x": torch.zeros(2, 12, 9, 10).double()}, r"x is torch\.float64, .*; pass x\.to\(torch\.float32\)"),
    ({"x": [1.0]}, r"x is a builtins\.list; allowed: a torch\.Tensor"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=lambda each: each if isinstance(each, str) else "")
def test_refusals_say_what_is_allowed(changes: dict[str, Any], message: str) -> None:
    x, w = (tensor.detach() for tensor in tensors("plain"))
    with pytest.raises(KernelwrightError, match=message):
        conv2d(**{"x": x, "w": w, **changes})


def test_a_missing_dispatcher_is_told() -> None:
    x, w = (tensor.detach() for tensor in tensors("plain"))
    dispatchers.forget("cpu")
    with pytest.raises(dispatchers.DispatcherNotFoundError):
        conv2d(x, w)

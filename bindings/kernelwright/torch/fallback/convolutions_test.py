"""Convolutions by torch's operators against those of torch's gradients, with paddings that differ on both sides."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from kernelwright.torch.fallback import convolutions
from torch.nn import functional

FALLS_BACK = True


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 1), (0, 2), (3, 1)])
@pytest.mark.parametrize(("stride", "dilation", "groups"), [(1, 1, 1), (2, 1, 2), (1, 2, 1), (3, 2, 2)])
def test_all_directions(dims: int, left: int, right: int, stride: int, dilation: int, groups: int) -> None:
    torch.manual_seed(0)
    size, points = [8, 7, 6][:dims], [3, 2, 2][:dims]
    x = torch.randn(2, 4, *size, dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 4 // groups, *points, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(6, dtype=torch.float64)
    conv: Any = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[dims]
    padded = functional.pad(x, [left, right] * dims)
    expected = conv(padded, w, bias, stride, 0, dilation, groups)
    window = ([stride] * dims, [left] * dims, [right] * dims, [dilation] * dims, groups)
    torch.testing.assert_close(convolutions.forward(x, w, bias, None, *window), expected)
    residual = torch.randn_like(expected)
    fused = convolutions.forward(x, w, bias, residual, *window, "relu")
    torch.testing.assert_close(fused, torch.relu(expected + residual))
    of_x, of_w = torch.autograd.grad(expected, [x, w], residual)
    torch.testing.assert_close(convolutions.backward_data(residual, w, size, *window), of_x)
    torch.testing.assert_close(convolutions.backward_weight(x, residual, points, *window), of_w)

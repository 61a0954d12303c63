"""Convolution of torch tensors, which are read where they lie."""

from __future__ import annotations

import torch

from kernelwright.dispatch import Dispatcher


def test_channels_last_tensors_are_read_where_they_lie(dispatcher: Dispatcher) -> None:
    x = torch.randn(2, 12, 9, 10).to(memory_format=torch.channels_last)
    w = torch.randn(9, 4, 3, 2).to(memory_format=torch.channels_last)
    y = dispatcher.conv_forward(x.permute(0, 2, 3, 1), w.permute(0, 2, 3, 1), padding=1, groups=3)
    wanted = torch.nn.functional.conv2d(x, w, padding=1, groups=3)
    torch.testing.assert_close(y.permute(0, 3, 1, 2), wanted, rtol=1e-5, atol=1e-5)

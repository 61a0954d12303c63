"""Training steps of a network whose convolutions are kernels: torch_training.py [--library DIR] [--device cuda:0].

Each layer is one operator, kernelwright::conv: convolution, bias, residual and relu in one kernel. Its gradients are
convolutions by the same library. The same network by torch alone must learn the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pants: no-infer-dep
from shared import example_parser, open_library
from torch.nn import functional  # pants: no-infer-dep

import kernelwright.torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher

STEPS = 10
Convolve = Callable[..., Any]


def by_kernels(x: Any, w: Any, bias: Any, residual: Any = None, **window: Any) -> Any:
    """A layer by one kernel."""
    return kernelwright.torch.conv2d(x, w, bias, residual=residual, activation="relu", **window)


def by_torch(x: Any, w: Any, bias: Any, residual: Any = None, **window: Any) -> Any:
    """The same by torch."""
    y = functional.conv2d(x, w, bias, **window)
    return functional.relu(y if residual is None else y + residual)


def network(convolve: Convolve, x: Any, weights: list[Any]) -> Any:
    """A stem with strides, a grouped block with a residual, means over the points."""
    first, first_bias, second, second_bias = weights
    x = convolve(x, first, first_bias, stride=2, padding=1)
    x = convolve(x, second, second_bias, x, padding=1, groups=4)
    return x.mean((2, 3))


def main(arguments: list[str] | None = None) -> None:
    """Train both networks from the same start and compare their losses."""
    parser = example_parser(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, or hip:N, which torch calls cuda:N too")
    options = parser.parse_args(arguments)
    kernelwright.torch.use(Dispatcher(open_library(options, options.device), device=options.device))

    where = options.device.replace("hip", "cuda")
    torch.manual_seed(0)
    x = torch.randn(16, 3, 24, 24, device=where).to(memory_format=torch.channels_last)
    target = torch.rand(16, 32, device=where)
    start = [torch.randn(32, 3, 3, 3) / 5, torch.zeros(32), torch.randn(32, 8, 3, 3) / 8, torch.zeros(32)]

    losses: list[list[float]] = []
    for convolve in (by_kernels, by_torch):
        weights = [weight.to(where, copy=True).requires_grad_() for weight in start]
        optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
        losses.append([])
        for _ in range(STEPS):
            loss = functional.mse_loss(network(convolve, x, weights), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(float(loss.detach()))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-3, atol=0)
    assert losses[0][-1] < losses[0][0]
    print(f"{STEPS} steps, loss {losses[0][0]:.4f} to {losses[0][-1]:.4f}, as torch alone")


if __name__ == "__main__":
    main()

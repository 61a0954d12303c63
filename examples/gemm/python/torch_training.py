"""Training steps of a network whose layers are kernels: torch_training.py [--library DIR] [--device cuda:0].

Each layer is one operator, kernelwright::gemm: product, bias and GELU in one kernel. Its gradients are products by the
same library. The same network by torch alone must learn the same.
"""

from __future__ import annotations

import torch  # pants: no-infer-dep
from command_line import example_parser, open_library
from torch.nn import functional  # pants: no-infer-dep

import kernelwright.torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher

STEPS = 20


def by_kernels(x: torch.Tensor, first: torch.Tensor, bias: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """The network by kernels."""
    hidden = kernelwright.torch.linear(x, first, bias, activation="gelu")
    return kernelwright.torch.linear(hidden, last)


def by_torch(x: torch.Tensor, first: torch.Tensor, bias: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """The same by torch."""
    return functional.linear(functional.gelu(functional.linear(x, first, bias)), last)


def main(arguments: list[str] | None = None) -> None:
    """Train both networks from the same start and compare their losses."""
    parser = example_parser(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, or hip:N, which torch calls cuda:N too")
    parser.add_argument("--dtype", default="float32", help="bfloat16 for libraries without fp32")
    options = parser.parse_args(arguments)
    kernelwright.torch.use(Dispatcher(open_library(options, options.device), device=options.device))

    where, dtype = options.device.replace("hip", "cuda"), getattr(torch, options.dtype)
    torch.manual_seed(0)
    x = torch.randn(256, 64, device=where, dtype=dtype)
    target = x.square() @ torch.randn(64, 8, device=where, dtype=dtype) / 8
    start = [torch.randn(128, 64) / 8, torch.zeros(128), torch.randn(8, 128) / 11]

    losses = []
    for network in (by_kernels, by_torch):
        weights = [weight.to(where, dtype, copy=True).requires_grad_() for weight in start]
        optimizer = torch.optim.SGD(weights, lr=0.05, momentum=0.9)
        losses.append([])
        for _ in range(STEPS):
            loss = functional.mse_loss(network(x, *weights), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(float(loss.detach()))
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-3 if dtype == torch.float32 else 5e-2, atol=0)
    assert losses[0][-1] < losses[0][0]
    print(f"{STEPS} steps, loss {losses[0][0]:.4f} to {losses[0][-1]:.4f}, as torch alone")


if __name__ == "__main__":
    main()

"""Training steps of a GPT on kernels: torch_training.py [--library DIR] [--linear DIR] [--size gpt2] [--device cuda:0].

Attention is kernels, and with --linear so are the linear layers. The same network by torch alone, from the same random
weights, must score and learn the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch  # pants: no-infer-dep
from common import example_parser, open_library
from torch import nn  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep

import kernelwright.torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher, KernelLibrary


@dataclass(frozen=True)
class Size:
    """Sizes of a network and of what it is trained on; ``places`` is the longest text that it takes."""

    layers: int
    width: int
    heads: int
    places: int
    vocabulary: int
    batch: int
    tokens: int
    steps: int


SIZES = {
    "small": Size(layers=2, width=128, heads=4, places=48, vocabulary=100, batch=4, tokens=48, steps=5),
    "gpt2": Size(layers=12, width=768, heads=12, places=1024, vocabulary=50257, batch=1, tokens=256, steps=1),
}
Function = Callable[..., Any]


@dataclass(frozen=True)
class Functions:
    """What computes a network's attention and linear layers."""

    attend: Function
    linear: Function


class Block(nn.Module):  # type: ignore[misc]
    """Attention and a network of two layers, each behind a norm and with a residual, as in GPT-2."""

    def __init__(self, size: Size, by: Functions) -> None:
        super().__init__()
        width = size.width
        self.by, self.heads = by, size.heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def apply_layer(self, layer: nn.Linear, x: Any) -> Any:
        """A linear layer by the function in use."""
        return self.by.linear(x, layer.weight, layer.bias)

    def forward(self, x: Any) -> Any:
        """x (batch, tokens, width)."""
        batch, tokens, width = x.shape
        parts = self.apply_layer(self.qkv, self.norms[0](x)).view(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # views: kernels take strides as they are
        seen = self.by.attend(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.apply_layer(self.out, seen)
        inner = functional.gelu(self.apply_layer(self.up, self.norms[1](x)), approximate="tanh")
        return x + self.apply_layer(self.down, inner)


class Gpt(nn.Module):  # type: ignore[misc]
    """Scores of the next token. Random weights as GPT-2 starts with."""

    def __init__(self, size: Size, by: Functions) -> None:
        super().__init__()
        self.by = by
        self.tokens, self.places = nn.Embedding(size.vocabulary, size.width), nn.Embedding(size.places, size.width)
        self.blocks = nn.Sequential(*[Block(size, by) for _ in range(size.layers)])
        self.norm = nn.LayerNorm(size.width)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                deviation = 0.02 / (2 * size.layers) ** 0.5 if name.endswith(("out.weight", "down.weight")) else 0.02
                nn.init.normal_(parameter, std=deviation)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, text: Any) -> Any:
        """text (batch, tokens)."""
        x = self.tokens(text) + self.places.weight[: text.shape[1]]
        return self.by.linear(self.norm(self.blocks(x)), self.tokens.weight)


@dataclass(frozen=True)
class Trained:
    """The scores before training, the loss of every step, and gradients and weights after the last one."""

    scores: Any
    losses: list[float]
    gradients: list[Any]
    weights: list[Any]


def trained(size: Size, by: Functions, text: Any) -> Trained:
    """Train on the text from the same start each time."""
    torch.manual_seed(0)
    model = Gpt(size, by).to(text.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    first, losses = None, []
    for _ in range(size.steps):
        scores = model(text[:, :-1])
        first = scores.detach() if first is None else first
        loss = functional.cross_entropy(scores.reshape(-1, size.vocabulary), text[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    parameters = [parameter.detach() for parameter in model.parameters()]
    return Trained(first, losses, [one.grad for one in model.parameters()], parameters)


def difference(mine: Any, theirs: Any) -> float:
    """The largest one, relative to the largest element."""
    return float((mine - theirs).abs().max() / theirs.abs().max())


def linear_by_kernels(x: Any, weight: Any, bias: Any = None) -> Any:
    """The product is a kernel's; kernels that ship for GPUs add no bias."""
    product = kernelwright.torch.linear(x, weight)
    return product if bias is None else product + bias


def main(arguments: list[str] | None = None) -> None:
    """Train both networks and compare what they compute and learn."""
    parser = example_parser(__doc__)
    parser.add_argument("--linear", help="folder of a library of GEMM kernels, which compute the linear layers")
    parser.add_argument("--size", choices=SIZES, default="small", help="gpt2 has 124 million weights")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, or hip:N, which torch calls cuda:N too")
    options = parser.parse_args(arguments)
    libraries = [open_library(options, options.device)]
    if options.linear:
        libraries.append(KernelLibrary.load_for(options.device, options.linear))
    kernelwright.torch.use(Dispatcher(libraries, device=options.device))
    size = SIZES[options.size]
    torch.manual_seed(1)
    text = torch.randint(size.vocabulary, (size.batch, size.tokens + 1), device=options.device.replace("hip", "cuda"))
    linear = linear_by_kernels if options.linear else functional.linear
    mine = trained(size, Functions(kernelwright.torch.scaled_dot_product_attention, linear), text)
    theirs = trained(size, Functions(functional.scaled_dot_product_attention, functional.linear), text)
    assert difference(mine.scores, theirs.scores) < 1e-4
    torch.testing.assert_close(torch.tensor(mine.losses), torch.tensor(theirs.losses), rtol=1e-4, atol=0)
    for gradient, wanted in zip(mine.gradients, theirs.gradients, strict=True):
        assert difference(gradient, wanted) < 1e-3
    assert mine.losses[-1] < mine.losses[0] or size.steps == 1
    count = sum(one.numel() for one in mine.weights)
    print(f"{count} weights, {size.steps} steps, loss {mine.losses[0]:.4f} to {mine.losses[-1]:.4f}, as torch alone")


if __name__ == "__main__":
    main()

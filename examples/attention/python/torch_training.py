"""Training steps of a small GPT whose attention is kernels: torch_training.py [--library DIR] [--device cuda:0].

The same network with torch's own attention, from the same start, must compute and learn the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # pants: no-infer-dep
from common import example_parser, open_library
from torch import nn  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep

import kernelwright.torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher

STEPS, LAYERS, WIDTH, HEADS, TOKENS, VOCABULARY = 5, 2, 128, 4, 48, 100
Attend = Callable[..., Any]


class Block(nn.Module):  # type: ignore[misc]
    """Attention and a network of two layers, each behind a norm and with a residual, as in GPT-2."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend = attend
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """x (batch, tokens, width)."""
        batch, tokens, _ = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # views: kernels take strides as they are
        seen = self.attend(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.out(seen)
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):  # type: ignore[misc]
    """Scores of the next token."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.Sequential(*[Block(attend) for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, text: Any) -> Any:
        """text (batch, tokens)."""
        x = self.tokens(text) + self.places.weight[: text.shape[1]]
        return self.norm(self.blocks(x)) @ self.tokens.weight.t()


def losses(attend: Attend, text: Any, where: str) -> list[float]:
    """Of every training step."""
    torch.manual_seed(0)
    model = Gpt(attend).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    for _ in range(STEPS):
        scores = model(text[:, :-1])
        loss = functional.cross_entropy(scores.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Train both networks and compare their losses."""
    parser = example_parser(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, or hip:N, which torch calls cuda:N too")
    options = parser.parse_args(arguments)
    kernelwright.torch.use(Dispatcher(open_library(options, options.device), device=options.device))
    where = options.device.replace("hip", "cuda")
    torch.manual_seed(1)
    text = torch.randint(VOCABULARY, (4, TOKENS + 1), device=where)
    mine = losses(kernelwright.torch.scaled_dot_product_attention, text, where)
    theirs = losses(functional.scaled_dot_product_attention, text, where)
    torch.testing.assert_close(torch.tensor(mine), torch.tensor(theirs), rtol=1e-4, atol=0)
    assert mine[-1] < mine[0]
    print(f"{STEPS} steps, loss {mine[0]:.4f} to {mine[-1]:.4f}, as torch alone")


if __name__ == "__main__":
    main()

"""docs/adoption.md as it is written, and adopted models trained beside torch's, by real CPU kernels."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import kernelwright.torch

FALLS_BACK = True
PAGE = Path(__file__).parents[2] / "docs" / "adoption.md"


class Mixed(nn.Module):
    """Images to classes: a convolution with its norm, attention over points, two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.mix = nn.Linear(16, 48)
        self.head = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 7, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        points = self.stem(x).flatten(2).mT
        q, k, v = self.mix(points).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.head((points + y).mean(1))


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    kernelwright.torch.reset_report()
    model, x = Mixed().eval(), torch.randn(2, 3, 12, 12)
    expected = model(x)
    names: dict[str, Any] = {"model": model, "x": x}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "replaced: 1 Conv2d, 3 Linear; attention within 1 modules, 2 fused" in printed
    assert "gemm " in printed and "attention " in printed
    torch.testing.assert_close(names["y"], expected, rtol=1e-3, atol=1e-4)
    assert (tmp_path / "unserved.json").exists() and type(model) is Mixed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_training_steps(dtype: torch.dtype, how: str) -> None:
    model = Mixed().to(dtype)
    ours = copy.deepcopy(model)
    kernelwright.torch.adopt(ours)
    called = torch.compile(ours, backend="aot_eager") if how == "compiled" else ours
    losses: list[list[float]] = []
    batches = [(torch.randn(4, 3, 12, 12).to(dtype), torch.randint(0, 7, (4,))) for _ in range(10)]
    for trained, forward in ((model, model), (ours, called)):
        steps = torch.optim.SGD(trained.parameters(), 0.05)
        losses.append([])
        for x, wanted in batches:
            steps.zero_grad()
            loss = functional.cross_entropy(forward(x).float(), wanted)
            loss.backward()
            steps.step()
            losses[-1].append(loss.item())
    tolerance = 1e-3 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=tolerance, atol=tolerance)
    assert losses[0][0] != losses[0][-1]

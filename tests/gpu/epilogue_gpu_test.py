"""Kernels that choose their epilogue by the problem, each with many of them; of those that copy rows, at any address.

Operands are small whole numbers, so that every sum is exact and the result without an activation is known to the bit;
results lie in poison that must stay as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from operands import TORCH  # noqa: E402
from places import DEVICE, current_stream, synchronize  # noqa: E402

from conftest import LIBRARY, NEEDS_DISPATCHER  # noqa: E402

dispatch = pytest.importorskip("kernelwright.dispatch")
pytestmark = NEEDS_DISPATCHER

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "fast_gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
# Largest error of an activation in fp32 arithmetic with fast exponentials, and of one rounding of the output.
TOLERANCE = {"fp32": 1e-5, "fp16": 2.0**-10, "bf16": 2.0**-7}


@dataclass(frozen=True)
class Epilogue:
    """``ds``: a word for each D tensor, "line" (one for all rows) or "full"; ``apart``: each of a batch has its own."""

    ds: tuple[str, ...] = ()
    d_op: str = "add"
    activation: str = "none"
    alpha: float = 1.0
    beta: float = 0.0
    batch: int = 1
    apart: bool = True


EPILOGUES = (
    Epilogue(),
    Epilogue(beta=1.0),
    Epilogue(("line",)),
    Epilogue(("full",), alpha=2.0),
    Epilogue(("line", "full"), activation="relu"),
    Epilogue(("full", "line"), activation="gelu", beta=-1.0),
    Epilogue(("line", "line", "full", "full"), activation="tanh", batch=3),
    Epilogue(("full",), "multiply", "silu"),
    Epilogue(("line", "full"), "multiply", beta=2.0, batch=2, apart=False),
    Epilogue(("full", "full", "line"), "multiply", "sigmoid"),
    Epilogue(("line",), activation="fast_gelu", batch=2),
    Epilogue(activation="fast_gelu", alpha=0.5),
)
SHAPES = ((128, 256, 64), (1, 8, 16), (3, 264, 100), (517, 136, 1001), (65, 24, 513), (300, 520, 200))
ANY_SHAPES = ((1, 1, 1), (3, 7, 5), (129, 65, 63), (517, 131, 1001), (64, 257, 66), (33, 500, 8))


@cache
def library() -> Any:
    return dispatch.KernelLibrary.load(LIBRARY.parent)


def kernels() -> list[Any]:
    if not (LIBRARY.parent / "manifest.json").exists():
        return []
    return [kernel for kernel in library().kernels if kernel.spec.get("activation") == "any"]


class Stack:
    """``batch`` matrices in poison: lines ``leading`` elements apart, the first one ``offset`` elements in."""

    def __init__(self, batch: int, rows: int, columns: int, dtype: str, order: str, step: int, fill: bool = True):
        lines, along = (rows, columns) if order == "r" else (columns, rows)
        self.leading = -(-along // step) * step + step
        self.stride = (lines + 1) * self.leading
        offset = 1 if step % 2 else 0
        self.storage = torch.full((batch * self.stride + offset,), float("nan"), device=DEVICE).to(TORCH[dtype])
        inner = self.storage[offset:].view(batch, lines + 1, self.leading)[:, :lines, :along]
        self.view = inner if order == "r" else inner.transpose(1, 2)
        self.pointer = inner.data_ptr()
        if fill:
            inner.copy_(torch.randint(-2, 3, inner.shape, device=DEVICE))

    def untouched_outside(self) -> bool:
        self.view.fill_(0)
        return int(self.storage.isnan().logical_not().sum()) == self.view.numel()


@pytest.mark.parametrize("chooser", kernels(), ids=lambda kernel: kernel.name)
def test_every_epilogue_is_right_and_writes_nothing_else(chooser: Any) -> None:
    copied = chooser.spec["pipeline"] == "cp_async"
    chosen = dispatch.Dispatcher([library()], device=DEVICE, selection=chooser.identity)
    for number, epilogue in enumerate(EPILOGUES):
        for m, n, k in ANY_SHAPES if copied else (SHAPES[number % len(SHAPES)], SHAPES[(number + 3) % len(SHAPES)]):
            check(chosen, chooser.spec, epilogue, (m, n, k), (1, 2, 4)[number % 3] if copied else 8)


def check(chosen: Any, spec: Any, e: Epilogue, shape: tuple[int, int, int], step: int) -> None:
    (m, n, k), layout, wide = shape, spec["layout"], spec["dtype_c"]
    a = Stack(e.batch, m, k, spec["dtype_a"], layout[0], step)
    b = Stack(e.batch, k, n, spec["dtype_b"], layout[1], step)
    c = Stack(e.batch, m, n, wide, "r", step)
    out = Stack(e.batch, m, n, wide, "r", step, fill=False)
    ds = [Stack(e.batch if e.apart else 1, m if d == "full" else 1, n, wide, "r", step) for d in e.ds]
    problem = dispatch.GemmProblem(
        m, n, k, layout=layout, dtype=spec["dtype_a"], dtype_c=wide, alpha=e.alpha, beta=e.beta, batch=e.batch,
        lda=a.leading, ldb=b.leading, ldc=c.leading, stride_a=a.stride, stride_b=b.stride, stride_c=c.stride,
        num_d=len(ds), d_op=e.d_op, activation=e.activation, split_k=1,
        ld_multi_d=tuple(d.leading if kind == "full" else 0 for d, kind in zip(ds, e.ds, strict=True)),
        stride_multi_d=tuple(d.stride if e.apart else 0 for d in ds),
    )  # fmt: skip
    plan = chosen.plan(problem)
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device=DEVICE)
    plan(
        a.pointer, b.pointer, c.pointer if e.beta else None, out=out.pointer, ds=[d.pointer for d in ds],
        stream=current_stream(), workspace=workspace.data_ptr(),
    )  # fmt: skip
    synchronize()
    total = e.alpha * (a.view.double() @ b.view.double()) + e.beta * c.view.double()
    for d in ds:
        total = total * d.view.double() if e.d_op == "multiply" else total + d.view.double()
    expected = ACTIVATIONS[e.activation](total)
    exact = e.activation in ("none", "relu")
    actual = out.view.double()
    right = actual == expected.to(TORCH[wide]).double() if exact else (
        (actual - expected).abs() <= TOLERANCE[wide] * expected.abs() + 2e-6 + (0 if wide == "fp32" else 1e-6)
    )  # fmt: skip
    wrong = ~right
    assert not wrong.any(), (
        f"{shape} {e}: {int(wrong.sum())} of {wrong.numel()} wrong, first {wrong.nonzero()[0].tolist()}"
    )
    assert out.untouched_outside(), f"{shape} {e}: written outside of the result"

"""One launch of every kernel on a given device, to be repeated and compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from operands import TORCH

from gemm.correctness.cases import Case
from gemm.correctness.grouped import GroupedBench
from gemm.correctness.memory import Torch
from kernelwright.dispatch import Dispatcher, KernelEntry, KernelLibrary

CASE = Case(528, 784, 1040, whole=True, beta=1.0, bias=True, batch=2, split_k=2)
_ALIGNMENT = 256


@dataclass(frozen=True)
class Work:
    """A launch: ``call`` starts it, ``out`` (bytes) gets its result."""

    name: str
    ordinal: int
    out: Any
    call: Callable[[], Any]

    def run(self) -> Any:
        """The bytes of the result, on the host, after a launch into poisoned memory."""
        poison(self.out)
        wait(self.ordinal)
        made = self.call()
        wait(self.ordinal)
        output = self.out if made is None else made.contiguous().view(torch.uint8)
        return output.cpu()


def poison(tensor: Any) -> Any:
    """The tensor with every byte changed to 0x7F."""
    tensor.view(torch.uint8).fill_(0x7F)
    return tensor


def wait(ordinal: int) -> None:
    """Until the device has done everything."""
    torch.cuda.synchronize(f"cuda:{ordinal}")


def every_work(library: KernelLibrary, ordinal: int) -> list[Work]:
    """Each kernel by addresses, and calls with torch tensors whose result, workspace or copy of C is allocated."""
    works = [_grouped(library, k, ordinal) if k.spec.get("grouped") else _single(library, k, ordinal)
             for k in library.kernels]  # fmt: skip
    return [*works, *_with_tensors(library, ordinal)]


def _flat(nbytes: int, dtype: str, ordinal: int, seed: int) -> Any:
    """Small whole numbers in so many bytes, the same on every device."""
    size = TORCH[dtype].itemsize
    values = torch.randint(-3, 4, (-(-nbytes // size),), generator=torch.Generator().manual_seed(seed))
    return values.float().to(TORCH[dtype]).to(f"cuda:{ordinal}")


def _scratch(nbytes: int, ordinal: int) -> Any:
    return torch.empty(nbytes + _ALIGNMENT, dtype=torch.uint8, device=f"cuda:{ordinal}")


def _aligned(tensor: Any) -> int:
    return int(-(-tensor.data_ptr() // _ALIGNMENT) * _ALIGNMENT)


def _single(library: KernelLibrary, kernel: KernelEntry, ordinal: int) -> Work:
    bench = GroupedBench(library, kernel, f"cuda:{ordinal}", Torch(f"cuda:{ordinal}"))
    problem = bench.problem(bench.fitted(CASE))
    plan = bench.dispatcher.plan(problem)
    bytes_a, bytes_b, bytes_c = problem.spans
    a, b, c = (
        _flat(nbytes, bench.names[x], ordinal, seed)
        for seed, (x, nbytes) in enumerate(zip("abc", (bytes_a, bytes_b, bytes_c), strict=True))
    )
    ds = [_flat(nbytes, bench.names["c"], ordinal, 7) for nbytes in problem.d_spans]
    out, scratch = torch.empty_like(c), _scratch(plan.workspace_bytes, ordinal)

    def call() -> None:
        where = {"ds": [d.data_ptr() for d in ds]} if ds else {}
        plan(a.data_ptr(), b.data_ptr(), c.data_ptr(), out=out.data_ptr(), workspace=_aligned(scratch), **where)

    return Work(kernel.name, ordinal, out, call)


def _grouped(library: KernelLibrary, kernel: KernelEntry, ordinal: int) -> Work:
    bench = GroupedBench(library, kernel, f"cuda:{ordinal}", Torch(f"cuda:{ordinal}"))
    cases = bench.groups([CASE, Case(64, 80, 144, whole=True, beta=1.0)])
    problem = bench.grouped_problem(cases)
    plan = bench.dispatcher.plan_grouped(problem)
    spans = [each.spans for each in problem.problems]
    lists = [[_flat(one[at], bench.names[x], ordinal, at) for one in spans] for at, x in enumerate("abc")]
    out, scratch = torch.empty_like(torch.cat(lists[2])), _scratch(plan.workspace_bytes, ordinal)
    sizes = [c.numel() for c in lists[2]]
    outs = [part.data_ptr() for part in out.split(sizes)]

    def call() -> None:
        a, b, c = ([one.data_ptr() for one in tensors] for tensors in lists)
        plan(a, b, outs, c, workspace=_aligned(scratch))

    return Work(kernel.name, ordinal, out, call)


def _with_tensors(library: KernelLibrary, ordinal: int) -> list[Work]:
    dispatcher = Dispatcher([library], device=f"cuda:{ordinal}")
    a, b, c = (_flat(512 * 512 * 2, "bf16", ordinal, seed).view(512, 512) for seed in range(3))
    out = torch.empty_like(c)
    calls: dict[str, Callable[[], Any]] = {
        "result": lambda: dispatcher.gemm(a, b.T),
        "result, C": lambda: dispatcher.gemm(a, b.T, c, beta=1.0),
        "workspace": lambda: dispatcher.gemm(a, b.T, split_k=4),
        "bias, relu": lambda: dispatcher.gemm(a, b.T, ds=[c[0]], activation="relu"),
        "groups": lambda: torch.cat(dispatcher.grouped_gemm([a, a[:64]], [b.T, b.T])),
    }
    return [Work(name, ordinal, out, call) for name, call in calls.items()]

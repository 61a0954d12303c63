"""Every kernel and variant on 1,000 random problems, and one operand of more than 2^31 elements.

Small whole numbers must come out exact; errors of others may be twice those of torch in the same precision. Memory
around results and in the workspace is poisoned and guarded, three runs of each problem must agree bit for bit.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from conftest import LIBRARY, NEEDS_DISPATCHER  # noqa: E402

dispatch = pytest.importorskip("kernelwright.dispatch")
from places import DEVICE, synchronize  # noqa: E402

from gemm.correctness.bench import Bench  # noqa: E402
from gemm.correctness.cases import Case, random_cases  # noqa: E402
from gemm.correctness.grouped import GroupedBench, random_groups  # noqa: E402
from gemm.correctness.memory import Torch  # noqa: E402
from gemm.correctness.reference import ACTIVATIONS, Array, Inputs, plain  # noqa: E402

pytestmark = NEEDS_DISPATCHER
CASES, PARTS = int(os.environ.get("KERNELWRIGHT_GPU_CASES", "1000")), 20


def on_gpu(inputs: Inputs) -> Array:
    """The reference in the kernel's own precision: torch's product of the same dtype, everything else in fp32."""
    kind, other = str(inputs.a.dtype), str(inputs.b.dtype)
    if inputs.integers or kind == "float32":
        return plain(inputs)
    if "float8_e5m2" in (kind, other):  # torch has no such product
        return finished(inputs, inputs.alpha * truncated(inputs.a.astype(np.float32), inputs.b.astype(np.float32)))
    products = torch.stack([product(a, b, kind) for a, b in zip(inputs.a, inputs.b, strict=True)])
    return finished(inputs, inputs.alpha * products.float().cpu().numpy())


def truncated(a: Array, b: Array) -> Array:
    """Sums of 8-bit products as the tensor cores keep them: cut to 14 bits after each 32 of K."""
    total: Array = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for k in range(0, a.shape[-1], 32):
        fraction, exponent = np.frexp(total + a[..., k : k + 32] @ b[..., k : k + 32, :])
        total = np.ldexp(np.trunc(fraction * 2.0**13) / 2.0**13, exponent).astype(np.float32)
    return total


def finished(inputs: Inputs, total: Array) -> Array:
    """The epilogue in fp32, rounded once."""
    if inputs.c is not None and inputs.beta != 0:
        total = total + np.float32(inputs.beta) * inputs.c.astype(np.float32)
    for d in inputs.ds:
        total = total * d.astype(np.float32) if inputs.d_op == "multiply" else total + d.astype(np.float32)
    return ACTIVATIONS[inputs.activation](total).astype(inputs.dtype)


def product(a: Array, b: Array, kind: str) -> Any:
    """One product by torch, in fp32."""
    left, right = (torch.from_numpy(x.astype(np.float32)).to(DEVICE) for x in (a, b))
    if kind != "float8_e4m3fn":
        return torch.mm(left.to(getattr(torch, kind)), right.to(getattr(torch, kind)), out_dtype=torch.float32)
    m, (k, n) = a.shape[0], b.shape
    pad = [-extent % 16 for extent in (m, n, k)]
    left = torch.nn.functional.pad(left, (0, pad[2], 0, pad[0])).to(torch.float8_e4m3fn).contiguous()
    right = torch.nn.functional.pad(right.T, (0, pad[2], 0, pad[1])).to(torch.float8_e4m3fn).contiguous()
    one = torch.ones((), device=DEVICE)
    made = torch._scaled_mm(left, right.T, one, one, out_dtype=torch.float32, use_fast_accum=True)
    return made[:m, :n]


@cache
def benches() -> list[Bench]:
    library = dispatch.KernelLibrary.load(LIBRARY.parent)
    single = [kernel for kernel in library.kernels if not kernel.spec.get("grouped")]
    return [Bench(library, kernel, DEVICE, Torch(DEVICE), on_gpu) for kernel in single]


def aligned(bench: Bench, case: Case) -> Case:
    """Lines of a column-major A are as long as m, which then needs whole 16 bytes too."""
    return replace(case, m=-(-case.m // 16) * 16) if bench.layout[0] == "c" else case


@pytest.mark.parametrize("part", range(PARTS))
def test_random_problems(part: int) -> None:
    served = 0
    whole_vectors, any_rows = (random_cases(CASES // PARTS, seed=part, work=4e6, align=align) for align in (16, 1))
    for number, cases in enumerate(zip(whole_vectors, any_rows, strict=True)):
        bench = benches()[(part * CASES // PARTS + number) % len(benches())]
        copied = bench.spec["pipeline"] == "cp_async"
        fitted = bench.fitted(cases[1]) if copied else aligned(bench, bench.fitted(cases[0]))
        reason = bench.refusal(fitted)
        if reason is not None and "k is 0" in reason:
            continue
        assert reason is None, f"{bench.kernel.name} refuses {fitted}: {reason}"
        bench.check(fitted)
        bench.memory = Torch(DEVICE)  # forgets the buffers of this problem
        served += 1
    assert served >= 0.8 * CASES // PARTS


def test_whole_numbers_are_exact_in_every_kernel() -> None:
    for bench in benches():
        for m, n, k in ((1, 256, 512), (131, 272, 1008), (517, 144, 4096)):
            case = aligned(bench, bench.fitted(Case(m, n, k, whole=True, batch=2, split_k=3, beta=1.0, bias=True)))
            if bench.refusal(case) is None:
                bench.check(case)
                bench.memory = Torch(DEVICE)


def test_random_groups() -> None:
    library = dispatch.KernelLibrary.load(LIBRARY.parent)
    for kernel in library.kernels:
        if kernel.spec.get("grouped"):
            for cases in random_groups(20, work=1e6, align=16, largest=70):
                bench = GroupedBench(library, kernel, DEVICE, Torch(DEVICE), on_gpu)
                fitted = [aligned(bench, case) for case in bench.groups(cases) if case.k > 0 or case.beta in (0, 1)]
                reason = bench.grouped_refusal(fitted)
                assert reason is None, reason
                bench.check_groups(fitted)


def test_more_than_2_31_elements() -> None:
    library = dispatch.KernelLibrary.load(LIBRARY.parent)
    dispatcher = dispatch.Dispatcher([library], device=DEVICE)
    m, n, k = 66_000, 256, 33_024
    a = torch.empty(m, k, device=DEVICE, dtype=torch.bfloat16).normal_()
    b = torch.empty(n, k, device=DEVICE, dtype=torch.bfloat16).normal_()
    assert a.numel() > 2**31
    out = dispatcher.gemm(a, b.T)
    synchronize()
    rows = torch.tensor([0, 1, 32_767, 40_000, 65_100, 65_535, 65_536, m - 1], device=DEVICE)
    expected = a[rows].double() @ b.double().T
    assert ((out[rows].double() - expected).norm() <= 4e-3 * expected.norm()).item()
    wide = dispatcher.gemm(b, a.T)  # the same operand as B; C has its rows as columns
    synchronize()
    assert ((wide[:, rows].double() - expected.T).norm() <= 4e-3 * expected.norm()).item()

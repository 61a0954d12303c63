"""What the dispatcher makes of CPU kernels: rankings, refusals, and further random problems.

KERNELWRIGHT_EVERY=1 runs 300 of them for each direction, each family of caches, dtype and architecture.
"""

from __future__ import annotations

import os

import pytest

from attention.runtime.bench import check_backward, check_forward
from attention.runtime.cases import random_case
from attention.runtime.random_caches import FAMILIES
from kernelwright.dispatch import AttentionProblem, Dispatcher, NoKernelError

Typed = tuple[Dispatcher, str]
MANY = range(300) if os.environ.get("KERNELWRIGHT_EVERY") else range(3)


@pytest.mark.parametrize("seed", MANY)
def test_many_problems(typed: Typed, seed: int) -> None:
    dispatcher, dtype = typed
    case = random_case(1000 + seed, dtype)
    if dtype == "fp16" and (case.soft_cap or case.bias == "alibi"):
        pytest.skip("the essential set has these in fp32 and bf16 only, but for some splits")
    check_forward(dispatcher, case)
    check_backward(dispatcher, case, deterministic=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", MANY)
def test_many_caches(typed: Typed, seed: int, family: str) -> None:
    dispatcher, dtype = typed
    FAMILIES[family](dispatcher, 2000 + seed, dtype)


def test_explanations_rank_all_families_of_a_stage(dispatcher: Dispatcher) -> None:
    decode = AttentionProblem("forward", 1, 8, 2, 1, 8192, 64, dtype="fp32", lse=True)
    explained = dispatcher.explain(decode)
    served = {kernel.name.split("_fp32")[0] for kernel in explained.kernels if kernel.rank is not None}
    assert served >= {"fmha_fwd", "fmha_fwd_splitkv"}
    assert dispatcher.plan(decode).choices.startswith("num_splits=")
    assert "us: compute" in str(explained)


def test_what_no_kernel_serves_is_refused(dispatcher: Dispatcher) -> None:
    with pytest.raises(NoKernelError, match=r"dtype_q is bf8, this kernel serves"):
        dispatcher.plan(AttentionProblem("forward", 1, 8, 2, 1, 16, 64, dtype="bf8"))
    with pytest.raises(NoKernelError, match=r"hdim_q is 512"):
        dispatcher.plan(AttentionProblem("forward", 1, 8, 2, 1, 16, 512, dtype="fp32"))

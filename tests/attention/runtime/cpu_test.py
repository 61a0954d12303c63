"""Everything that Dispatcher computes with attention, on real kernels of processors against float64.

A few problems; all seeds of every family with KERNELWRIGHT_EVERY=1.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from attention.masks import Window
from attention.runtime.bench import check_backward, check_forward
from attention.runtime.caches import check_append, check_decode, check_prefill
from attention.runtime.cases import Case, random_case
from kernelwright.dispatch import AttentionProblem, Dispatcher, NoKernelError

SEEDS = range(300) if os.environ.get("KERNELWRIGHT_EVERY") else range(25)
DTYPES = ("fp32", "bf16")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_forward(processor: Dispatcher, seed: int, dtype: str) -> None:
    check_forward(processor, random_case(seed, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", SEEDS)
def test_backward(processor: Dispatcher, seed: int, dtype: str) -> None:
    check_backward(processor, random_case(seed, dtype), deterministic=True)


@pytest.mark.parametrize("splits", [2, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_splits(processor: Dispatcher, splits: int, dtype: str) -> None:
    plain = Case((7, 7), (50, 330), dtype=dtype, splits=splits, seed=splits)
    for case in (plain, replace(plain, sinks=True), replace(plain, window=Window(60, 2, True))):
        check_forward(processor, case)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("queries", "window"), [(1, None), (3, None), (2, (20, 0))])
def test_decode(processor: Dispatcher, queries: int, window: tuple[int, int] | None, dtype: str) -> None:
    for kind, splits in (("block", 0), ("block", 3), ("list", 0)):
        check_decode(processor, kind, queries, window, splits, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("page_size", [1, 16])
def test_prefill(processor: Dispatcher, page_size: int, dtype: str) -> None:
    for kind in ("block", "list"):
        check_prefill(processor, kind, page_size, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("where", ["pages", "contiguous", "side by side"])
def test_append(processor: Dispatcher, where: str, dtype: str) -> None:
    for interleaved in (False, True):
        check_append(processor, where, interleaved, dtype)


def test_explanations_rank_all_families_of_a_stage(processor: Dispatcher) -> None:
    decode = AttentionProblem("forward", 1, 8, 2, 1, 8192, 64, dtype="fp32", lse=True)
    explained = processor.explain(decode)
    assert {kernel.name.split("_fp32")[0] for kernel in explained.kernels if kernel.rank is not None} >= {
        "fmha_fwd", "fmha_fwd_splitkv"
    }  # fmt: skip
    assert processor.plan(decode).choices.startswith("num_splits=")
    assert "us: compute" in str(explained)


def test_what_no_kernel_serves_is_refused(processor: Dispatcher) -> None:
    with pytest.raises(NoKernelError, match=r"dtype_q is fp16, this kernel serves"):
        processor.plan(AttentionProblem("forward", 1, 8, 2, 1, 16, 64, dtype="fp16"))
    with pytest.raises(NoKernelError, match=r"hdim_q is 512"):
        processor.plan(AttentionProblem("forward", 1, 8, 2, 1, 16, 512, dtype="fp32"))

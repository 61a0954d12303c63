"""GEMM kernels for AMD GPUs: what a number of 32 or 64 bits in their arguments cannot hold is refused, nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from amd.hollow import dispatcher
from kernelwright.dispatch import Dispatcher, GemmProblem, GroupedGemmProblem, NoKernelError

_TILE: dict[str, Any] = {"tile": [128, 128, 32], "wave": [2, 2, 1], "warp_tile": [32, 32, 16], "pipeline": "compv3"}
_KIND: dict[str, Any] = {"op": "gemm", "dtype": "fp16", "layout": "rcr", "scheduler": "intrawave", **_TILE}
_KIND |= {"epilogue": "cshuffle"}
SPECS: dict[str, dict[str, Any]] = {
    "plain": _KIND,
    "batched": {**_KIND, "batched": True},
    "split": {**_KIND, "split_k": True, "batched": True},
    "grouped": {**_KIND, "grouped": True},
}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("plain", {"m": 2**31, "n": 8, "k": 8}, "m = 2147483648 does not fit into 31 bits"),
    ("plain", {"m": 8, "n": 8, "k": 2**24}, "A spans .*byte offsets do not fit into 31 bits"),
    ("batched", {"m": 2**14, "n": 2**14, "k": 64, "batch": 2**20}, "more than a launch can have"),
    ("split", {"m": 8, "n": 8, "k": 0, "batch": 2**25}, "more than a launch can|can add up"),
]
SERVED: list[tuple[str, dict[str, Any]]] = [
    ("plain", {"m": 2**20, "n": 8, "k": 512}),
    ("plain", {"m": 2**24, "n": 2**8, "k": 256}),  # rows of a tile are addressed from its first one on
    ("batched", {"m": 8, "n": 8, "k": 8, "batch": 2**12, "stride_a": 2**40}),
    ("split", {"m": 512, "n": 512, "k": 4096, "batch": 8, "split_k": 4}),
]


@cache
def made(name: str) -> Dispatcher:
    return dispatcher([SPECS[name]])


@pytest.mark.parametrize(("name", "fields", "why"), REFUSED)
def test_what_does_not_fit_is_refused_with_its_reason(name: str, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(NoKernelError, match=why):
        made(name).plan(GemmProblem(**fields, dtype="fp16"))


@pytest.mark.parametrize(("name", "fields"), SERVED)
def test_what_fits_is_planned(name: str, fields: dict[str, Any]) -> None:
    made(name).plan(GemmProblem(**fields, dtype="fp16"))


def test_groups_are_refused_by_their_own_numbers() -> None:
    grouped = made("grouped")
    grouped.plan(GroupedGemmProblem([(128, 128, 64), (2**20, 8, 512)], dtype="fp16"))
    with pytest.raises(NoKernelError, match=r"group 1: A spans .*do not fit into 31 bits"):
        grouped.plan(GroupedGemmProblem([(128, 128, 64), (8, 8, 2**24)], dtype="fp16"))

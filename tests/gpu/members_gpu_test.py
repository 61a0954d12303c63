"""A sample of the members of preselected sets: each compiles, and each is exact on one small problem.

``tests/gpu/build_here.py --members N`` builds it into .gpu/members; $KERNELWRIGHT_GPU_MEMBERS names another folder.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import LIBRARY, NEEDS_DISPATCHER

pytest.importorskip("torch")
dispatch = pytest.importorskip("kernelwright.dispatch")
from places import DEVICE  # noqa: E402

from gemm.correctness.bench import Bench  # noqa: E402
from gemm.correctness.cases import Case  # noqa: E402
from gemm.correctness.grouped import GroupedBench  # noqa: E402
from gemm.correctness.memory import Torch  # noqa: E402

FOLDER = Path(os.environ.get("KERNELWRIGHT_GPU_MEMBERS", LIBRARY.parents[1] / "members"))
pytestmark = NEEDS_DISPATCHER
CASE = Case(144, 272, 320, whole=True, beta=1.0, bias=True, batch=2, split_k=2)


@cache
def members() -> Any:
    return dispatch.KernelLibrary.load(FOLDER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "member" in metafunc.fixturenames:
        there = (FOLDER / "manifest.json").exists()
        metafunc.parametrize("member", members().kernels if there else [], ids=lambda kernel: kernel.name)


def test_exact(member: Any) -> None:
    if member.spec.get("grouped"):
        bench = GroupedBench(members(), member, DEVICE, Torch(DEVICE))
        cases = bench.groups([CASE, Case(16, 48, 64, whole=True, beta=1.0, seed=1)])
        assert bench.grouped_refusal(cases) is None
        bench.check_groups(cases)
        return
    single = Bench(members(), member, DEVICE, Torch(DEVICE))
    case = single.fitted(CASE)
    assert single.refusal(case) is None
    single.check(case)


def test_every_member_compiled() -> None:
    if not (FOLDER / "failures.json").exists():
        pytest.skip(f"{FOLDER} is not built: run tests/gpu/build_here.py --members N")
    failures = json.loads((FOLDER / "failures.json").read_text())
    assert not failures, "\n\n".join(f"{name}:\n{text[:2000]}" for name, text in failures.items())

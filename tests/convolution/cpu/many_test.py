"""500 random problems of each direction and dtype: ``KERNELWRIGHT_EVERY=1 ./pants test tests/convolution/cpu:many``."""

from __future__ import annotations

import itertools
import os

import pytest

from convolution.correctness.bench import check
from convolution.correctness.cases import random_problems
from kernelwright.dispatch import Dispatcher


@pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="takes minutes: KERNELWRIGHT_EVERY=1 runs it")
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
def test_many_random_problems(dispatcher: Dispatcher, direction: str, dtype: str) -> None:
    for number, problem in enumerate(itertools.islice(random_problems(500, direction, dtype), 500)):
        check(dispatcher, problem, number, whole=number % 2 == 0, repeats=1)

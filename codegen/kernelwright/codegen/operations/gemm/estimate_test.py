from __future__ import annotations

import pytest

from kernelwright.arch import load, names
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.operations.gemm.estimate import compile_seconds
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.sets import expand_set


@pytest.mark.parametrize("name", names())
def test_compiles_are_the_long_actions(name: str) -> None:
    arch = load(name)
    kernels = list(expand_set("gemm:essential", arch).kernels)
    plan = compile_plan("gemm", arch, kernels, backend_for(arch, {}))
    seconds = {action.seconds for kernel in plan.kernels for action in kernel.actions[:1]}
    assert seconds == {compile_seconds(kernel, arch) for kernel in kernels}
    others = [action.seconds for action in plan.all_actions if action.seconds not in seconds]
    assert min(seconds) > 1 and max(seconds) < 120 and max(others) < min(seconds)

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from kernelwright.arch import load
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, ToolchainChoice, backend_for
from kernelwright.codegen.batching.batch import Batch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.batches import batches
from kernelwright.codegen.planning.compile_plan import kernel_actions
from kernelwright.codegen.selecting.sets import expand_set


def kernels(arch: str) -> list[Kernel]:
    """Ten of GEMM and, where the architecture has them, six of convolution, mixed and sorted by name."""
    sets = {"gemm:essential": 10, **({"convolution:essential": 6} if arch == "gfx942" else {})}
    chosen = [kernel for name, count in sets.items() for kernel in expand_set(name, load(arch)).kernels[:count]]
    return sorted(chosen, key=lambda kernel: kernel.name)


def made(
    arch: str, made_before: int = 0, jobs: int = 1, toolchains: Mapping[str, ToolchainChoice] = MappingProxyType({})
) -> list[Batch]:
    backend = backend_for(load(arch), {**DEFAULT_TOOLCHAINS, **toolchains})
    listed = kernels(arch)
    roads = [kernel_actions(kernel, load(arch), backend) for kernel in listed]
    missing = {action for road in roads[made_before:] for action in road.actions}
    return batches(listed, load(arch), roads, backend, missing, jobs)


def test_batches_hold_kernels_of_one_operation() -> None:
    convolutions, first, second = sorted(made("gfx942"), key=lambda batch: batch.members[0].source or "", reverse=True)
    for batch, word, count in ((convolutions, "conv", 6), (first, "gemm", 5), (second, "gemm", 5)):
        assert len(batch.members) == count and all(word in (member.source or "") for member in batch.members)


def test_only_what_is_missing_is_compiled_and_as_many_at_once_as_may_run() -> None:
    assert sum(len(batch.members) for batch in made("gfx942", made_before=10)) == 6
    assert [len(batch.members) for batch in made("gfx942", jobs=5)] == [2] * 6  # one convolution is left over
    assert made("gfx942", jobs=16) == [] and made("gfx942", made_before=16) == []


def test_the_command_differs_from_those_of_single_kernels_in_its_files_alone() -> None:
    batch, *_ = made("gfx942")
    joined = batch.join(batch.members[:2])
    assert joined is not None
    first, second = batch.members[:2]
    action, file = joined.action, joined.file
    assert [word for word in action.argv if word not in (file.path, *action.outputs)] == [
        word for word in first.argv if word not in (first.source, *first.outputs)
    ]
    assert (action.trees, action.env, action.caches) == (first.trees, first.env, first.caches)
    assert set(action.inputs) == {file.path, first.source, second.source}
    assert file.path.startswith("gfx942/") and file.text.count("#include") == 2
    assert first.memory_mb < action.memory_mb < batch.memory_mb


@pytest.mark.parametrize(
    ("arch", "toolchains"),
    [
        ("x86_64_v4", {}),
        ("sm_90a", {}),
        ("gfx942", {"hip": {"choice": "rocm", "path": "/opt/rocm", "fingerprint": "abc"}}),
    ],
)
def test_others_are_compiled_one_by_one(arch: str, toolchains: Mapping[str, ToolchainChoice]) -> None:
    assert made(arch, toolchains=toolchains) == []

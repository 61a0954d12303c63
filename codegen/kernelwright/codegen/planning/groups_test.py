from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.planning.groups import groups_of
from kernelwright.codegen.selecting.expand import iterate_config
from kernelwright.codegen.testing.null_backend import NullBackend, null_templates

CPU = archs.load("x86_64_v3")


def kernels(count: int) -> list[Kernel]:
    config = {
        "op": "gemm",
        "tile_config": {
            "tile_m": {"values": [6 * n for n in range(1, 41)]},
            "tile_n": {"values": [16 * n for n in range(1, 41)]},
            "tile_k": {"values": [64]},
            "warp_tile": {"values": [[6, 16, 1]]},
        },
        "trait_config": {"dtype": {"values": ["fp32"]}, "layout": {"values": ["rrr"]}},
    }
    return sorted(itertools.islice(iterate_config(config, CPU), count), key=lambda kernel: kernel.name)


KERNELS = kernels(1000)


def members(listed: Sequence[Kernel], size: int) -> set[tuple[str, ...]]:
    return {tuple(kernel.name for kernel in listed[a:b]) for a, b in groups_of(listed, size)}


@pytest.mark.parametrize("size", [4, 16, 64])
def test_groups_part_the_kernels_in_order(size: int) -> None:
    ranges = groups_of(KERNELS, size)
    assert [number for first, end in ranges for number in range(first, end)] == list(range(len(KERNELS)))
    assert size / 2 < len(KERNELS) / len(ranges) < size * 2


def test_small_libraries_have_no_groups() -> None:
    assert groups_of(KERNELS[:128]) == []
    assert len(groups_of(KERNELS[:129])) > 1


def test_adding_or_removing_a_kernel_changes_one_group_or_two() -> None:
    whole = members(KERNELS, 16)
    changes = [len(whole - members([*KERNELS[:n], *KERNELS[n + 1 :]], 16)) for n in range(len(KERNELS))]
    assert set(changes) <= {1, 2}
    assert changes.count(1) > 0.9 * len(changes)


@pytest.mark.thorough(instead="test_adding_or_removing_a_kernel_changes_one_group_or_two")
def test_a_change_links_its_group_and_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    null_templates(monkeypatch)
    ran: list[str] = []
    executor = LocalExecutor({}, tmp_path, progress=ran.append)
    for listed in (KERNELS[:140], [*KERNELS[:70], KERNELS[300], *KERNELS[71:140]]):
        ran.clear()
        plan = compile_plan("many", CPU, listed, NullBackend())
        files = executor.run(plan.all_files, plan.all_actions)
    assert len(plan.groups) > 2
    (compiled,) = [line for line in ran if line.endswith(f"{KERNELS[300].name}.o")]
    grouped = [line for line in ran if "_group_" in line]
    assert set(ran) == {compiled, *grouped, "Copy to x86_64_v3/libmany.so"}
    assert len(grouped) == 2  # the group that lost a kernel, and the one that got another
    library = files["x86_64_v3/libmany.so"].read_text()
    assert all(library.count(f"// {kernel.name} x86_64_v3 ") == 1 for kernel in listed)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelwright.codegen.actions import Action
from kernelwright.codegen.registry import OPERATIONS, register, unregister
from kernelwright.codegen.trees import TREES, Tree, all_trees, find_tree
from kernelwright.codegen.violations import SpecError


class Fft:
    """An operation from outside with kernels for two backends, and launchers of one."""

    name, spec_type, backends = "fft", object, ("cpu", "cutlass")

    def name_of(self, spec: object) -> str:
        return "fft"

    def on_backend(self, backend: str) -> SimpleNamespace:
        return SimpleNamespace(sources={} if backend == "cpu" else {"launch": "__cuda_src_fft_launcher/launch.c"})


@pytest.fixture
def outside() -> Iterator[None]:
    register(Fft())
    yield
    unregister("fft")


def test_trees_follow_from_an_operation_and_its_backends(outside: None) -> None:
    own = {name: tree for name, tree in all_trees().items() if "fft" in name}
    folder = "include/kernelwright"
    assert {name: (tree.parts, tree.may_lack, tree.backend) for name, tree in own.items()} == {
        "fft": ((f"{folder}/fft.h",), (f"{folder}/fft",), None),
        "cpu_fft": ((f"{folder}/cpu/fft",), (), "cpu"),
        "cuda_src_fft": ((f"{folder}/cuda/fft",), (), "cutlass"),
        "cuda_src_fft_launcher": (("launchers/cuda/fft",), (), "cutlass"),
    }
    assert all(find_tree(name) == tree and tree.own for name, tree in own.items())
    assert find_tree("hip_fft") is find_tree("cpu_fft_launcher") is None
    assert Action("a", "A", (), (), (), trees=("cpu_fft",)).trees == ("cpu_fft",)
    with pytest.raises(ValueError, match=r"hip_fft.*allowed: zig, .*cuda_src_fft_launcher"):
        Action("a", "A", (), (), (), trees=("hip_fft",))


def test_no_list_names_an_operation() -> None:
    assert not [name for name in TREES if any(op in name for op in OPERATIONS)]
    for op in OPERATIONS:
        assert {op, f"cpu_{op}"} <= set(all_trees())
    for op in ("gemm", "convolution", "attention"):  # which GPUs compute, too
        assert {f"hip_{op}", f"cuda_src_{op}_launcher"} <= set(all_trees())


def test_a_part_that_may_lack_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.h").touch()
    tree = Tree("of a test", ("a.h",), may_lack=("a",))
    assert list(tree.tops(tmp_path)) == ["a.h"]
    (tmp_path / "a").mkdir()
    assert list(tree.tops(tmp_path)) == ["a.h", "a"] and tree.globs == ("a.h", "a/**")
    (tmp_path / "a.h").unlink()
    with pytest.raises(SpecError, match=r"has no a\.h"):
        tree.tops(tmp_path)

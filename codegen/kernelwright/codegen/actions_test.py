from __future__ import annotations

import pytest

from kernelwright.codegen.actions import Action
from kernelwright.codegen.trees import all_trees
from kernelwright.codegen.violations import SpecError


def test_an_action_reads_trees_that_there_are() -> None:
    assert Action("a", "A", (), (), (), trees=tuple(all_trees())).trees == tuple(all_trees())
    with pytest.raises(
        SpecError, match=r"action 'a' reads the trees 'hip', which there are not; allowed: .*hip_common"
    ):
        Action("a", "A", (), (), (), trees=("abi", "hip"))

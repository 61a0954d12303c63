from __future__ import annotations

from typing import Optional

from kernelwright.pants.goals.check_library import findings


def kernel(name: str, matrix_instructions: Optional[int]) -> dict[str, object]:
    resources = None if matrix_instructions is None else {"matrix_instructions": matrix_instructions}
    return {"name": name, "resources": resources}


def test_a_kernel_without_matrix_instructions_is_found() -> None:
    manifest = {"arch": "gfx1201", "kernels": [kernel("good", 32), kernel("empty", 0), kernel("cpu", None)]}
    (problem,) = findings(manifest)
    assert problem.startswith("empty: contains no matrix instruction")
    assert "gfx1201" in problem

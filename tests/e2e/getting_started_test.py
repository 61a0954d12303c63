"""docs/getting_started.md, to the letter, for those who have a checkout."""

from __future__ import annotations

import subprocess

from e2e.workspace import Workspace
from pages.pages import DOCS, script

PAGE = DOCS / "getting_started.md"


def follow(workspace: Workspace, heading: str) -> str:
    """What the commands of a section print, on either stream."""
    done = subprocess.run(
        ["bash", "-c", script(PAGE, heading).replace("./pants ", f"{workspace.launcher} ")],
        cwd=workspace.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_kernel_author(workspace: Workspace) -> None:
    said = follow(workspace, "Kernel author")
    assert "gfx942: AMD Instinct MI300 series" in said
    assert "x86_64_v3 gemm_fp32_rrr_" in said and "gfx942 gemm_bf16_rcr_compv4_" in said
    assert "kernels/mine:mine gfx942: 1 kernels" in said
    assert "Wrote dist/kernels/mine/mine/x86_64_v3/libmine.so" in said
    assert said.count('"status": "success"') == 2, said


def test_a_contributor(workspace: Workspace) -> None:
    said = follow(workspace, "Contributor")
    assert "proposals_test.py" in said and "succeeded" in said
    assert "dist/docs/html/index.html" in said

"""Names that lead out of the workspace, or that no compiler or shell should see: refused in one clear message."""

from __future__ import annotations

import json

import pytest

from faults.builds import CheapBuilds

KERNEL = (
    'gemm_kernel(name="k", arch="x86_64_v3", dtype={dtype}, layout="rrr", tile=[48, 64, 64], warp_tile=[6, 16, 1])\n'
)
LIBRARY = 'kernel_library(name="lib", dependencies=[":k"], {field}={value})\n'
MARK = "EVIL"


def package(build: CheapBuilds, dtype: str, field: str, value: str) -> str:
    """What Pants says, and an assertion that it failed and wrote nothing."""
    text = KERNEL.format(dtype=json.dumps(dtype)) + LIBRARY.format(field=field, value=json.dumps(value))
    build.workspace.write("bad/BUILD", text)
    before = sorted(build.workspace.root.parent.iterdir())
    try:
        run = build.workspace.pants(*build.options, "package", "bad:lib", timeout=300)
    finally:
        (build.workspace.root / "bad/BUILD").unlink()
    assert run.exit_code != 0
    assert "Traceback" not in run.stderr, run.stderr
    assert "bad" in run.stderr
    assert sorted(build.workspace.root.parent.iterdir()) == before
    assert not list(build.workspace.root.rglob(f"*{MARK}*"))
    return run.stderr


@pytest.mark.parametrize("path", [f"../{MARK}", f"a/../../{MARK}", f"/tmp/{MARK}", f"a\n{MARK}", f"a\u202e{MARK}"])
def test_output_paths_stay_below_dist(build: CheapBuilds, path: str) -> None:
    assert "output_path" in package(build, "fp32", "output_path", path)


@pytest.mark.parametrize("name", [f"../{MARK}", f'"; {MARK}', f"{{{{ {MARK} }}}}", f"a\n#include <{MARK}>", f"ü{MARK}"])
def test_library_names_are_identifiers(build: CheapBuilds, name: str) -> None:
    assert "letters, digits and underscores" in package(build, "fp32", "library_name", name)


def test_texts_of_a_spec_reach_no_code(build: CheapBuilds) -> None:
    assert "dtype" in package(build, f'fp32"\n#include "{MARK}"', "library_name", "fine")

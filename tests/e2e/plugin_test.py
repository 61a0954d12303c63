"""The plugin as its users meet it: what it makes, and what a mistake in a BUILD file says.

Needs the launcher and the package registry; run by .ci/run and by ``python -m pytest tests/e2e``.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from pathlib import Path

import pytest

from e2e.conftest import BUILD, CONFIG
from e2e.workspace import Workspace

CPU_HEADER = "dispatcher_cpp/include/kernelwright/cpu/gemm/micro/pack.hpp"


def compiled(ran: tuple[str, ...]) -> list[str]:
    return [description for description in ran if description.startswith("Compile gemm_")]


def test_library_and_manifest_belong_together(workspace: Workspace) -> None:
    folder = workspace.root / "dist/t/lib/x86_64_v3"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert sorted(path.name for path in folder.iterdir()) == ["liblib.so", "manifest.json", "provenance.json"]
    assert manifest["sha256"] == hashlib.sha256((folder / "liblib.so").read_bytes()).hexdigest()
    assert len(manifest["kernels"]) == 3


def test_a_header_of_the_backend_recompiles_its_kernels(workspace: Workspace) -> None:
    text = (workspace.root / CPU_HEADER).read_text()
    workspace.write(CPU_HEADER, text + f"// changed {secrets.token_hex()}\n")
    changed = workspace.pants("package", "t:lib")
    workspace.write(CPU_HEADER, text)
    assert len(compiled(changed.ran)) == 3
    # A comment changes no object, so nothing is linked; the statement names the header's new digest.
    assert not [description for description in changed.ran if description.startswith("Link")]
    assert [description for description in changed.ran if description.startswith("Describe")]


AMD = (
    'gemm_kernel(name="x", arch="gfx942", dtype="bf16", layout="rcr", tile=[100, 128, 32], wave=[2, 2, 1], '
    'warp_tile=[32, 32, 16], pipeline="compv3", epilogue="cshuffle", scheduler="intrawave")'
)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        ('gemm_kernel(name="x", arch="x86_64_v9", dtype="fp32")', ["bad:x", "x86_64_v9", "x86_64_v3"]),
        ('gemm_kernel(name="x", arch="x86_64_v3", dtype="fp23")', ["bad:x", "dtype", "fp23", "fp32"]),
        (AMD, ["bad:x", "tile.m", "100", "nearest"]),
        ('gemm_kernel(name="x", arch="gfx942", dtype="bf16", tile=[128, 128])', ["bad:x", "tile", "three integers"]),
        ('gemm_kernel(name="x", arch="gfx942", tyle=[1, 2, 3])', ["bad:x", "tyle"]),
        ('kernel_set(name="x", archs=["gfx942"], set="esential")', ["bad:x", "esential", "essential"]),
        (
            'kernel_set(name="x", archs=["sm_90a"], set="fp16_rcr_preshuffle")',
            ["bad:x", "fp16_rcr_preshuffle", "sm_90a"],
        ),
        ('kernel_set(name="x", archs=["gfx942"])', ["bad:x", "set, config and problems"]),
        ('kernel_set(name="x", archs=["gfx942"], set="gemm:essential", filter="c.tile_m > 9999")', ["bad:x", "filter"]),
        ('kernel_set(name="x", archs=["gfx942"], set="gemm:essential", filter="c.__class__")', ["bad:x", "__class__"]),
        ('file(name="x", source="BUILD")', ["bad:lib", "bad:x, a file", "gemm_kernel"]),
    ],
)
def test_a_mistake_names_target_field_and_what_is_allowed(
    workspace: Workspace, build: str, expected: list[str]
) -> None:
    workspace.write("bad/BUILD", f'{build}\nkernel_library(name="lib", dependencies=[":x"])\n')
    run = workspace.pants("package", "bad:lib")
    (workspace.root / "bad/BUILD").unlink()
    assert run.exit_code != 0
    for word in expected:
        assert word in run.stderr, run.stderr
    assert "Traceback" not in run.stderr
    assert not (workspace.root / "dist/bad").exists()


def test_a_kernel_beyond_its_limits_fails_its_build_with_the_numbers(workspace: Workspace) -> None:
    one = BUILD.splitlines()[2]  # it is compiled already
    limits = '{"max_registers": 2, "max_scratch_bytes": 3, "max_code_bytes": 1000000}'
    limited = one.replace('name="one", ', f'name="one", limits={limits}, ')
    workspace.write("limited/BUILD", f'{limited}\nkernel_library(name="lib", dependencies=[":one"])\n')
    refused = workspace.pants("package", "limited:lib")
    assert refused.exit_code == 1
    beyond = r"gemm_fp32_ccr_\S+: (\d+) [^;]+; allowed: at most (\d+) \((max_\w+)\)"
    exceeded = {limit: (int(used), allowed) for used, allowed, limit in re.findall(beyond, refused.stderr)}
    assert {limit: allowed for limit, (_, allowed) in exceeded.items()} == {
        "max_registers": "2",
        "max_scratch_bytes": "3",
    }, refused.stderr
    assert 2 < exceeded["max_registers"][0] <= 16 and exceeded["max_scratch_bytes"][0] >= 6 * 16 * 4
    assert "Traceback" not in refused.stderr and not (workspace.root / "dist/limited").exists()


def test_kernels_goal_counts_filters_and_exports(workspace: Workspace) -> None:
    counted = workspace.pants("kernels", "--count", "t:")
    assert counted.stdout.split() == ["x86_64_v3", "3"]
    listed = workspace.pants("kernels", "--list", "--filter=c.tile_n == 128", "t:")
    (line,) = listed.stdout.splitlines()
    assert "48x128x256" in line
    exported = workspace.pants("kernels", "--kernels-export-json=k.json", "t:")
    assert exported.exit_code == 0, exported.stderr
    kernels = json.loads((workspace.root / "dist/k.json").read_text())["kernels"]
    assert [kernel["spec"]["tile"]["n"] for kernel in kernels if kernel["spec"]["layout"] == "ccr"] == [64]
    none = workspace.pants("kernels", "--filter=c.tile_n > 999", "t:")
    assert none.exit_code != 0 and "filter" in none.stderr


def test_a_kernel_is_parametrized_by_arch(workspace: Workspace) -> None:
    spec = AMD.replace("tile=[100, 128, 32]", "tile=[128, 128, 32]").replace(
        'arch="gfx942"', 'arch=parametrize("gfx942", "gfx950")'
    )
    library = 'kernel_library(name="lib", dependencies=[":x@arch=gfx942", ":x@arch=gfx950"])'
    workspace.write("p/BUILD", f"{spec}\n{library}\n")
    counted = workspace.pants("kernels", "--count", "p:")
    assert counted.stdout.split() == ["gfx942", "1", "gfx950", "1"], counted.stderr


def test_check_passes_on_a_sound_library(workspace: Workspace) -> None:
    checked = workspace.pants("check", "t:lib")
    assert checked.exit_code == 0, checked.stderr
    assert "t:lib x86_64_v3: 3 kernels" in checked.stderr + checked.stdout


@pytest.mark.slow  # tests/remote compares what workers make in folders of theirs
def test_two_folders_give_the_same_bytes(workspace: Workspace, tmp_path: Path) -> None:
    other = Workspace(tmp_path)
    try:
        other.write("t/BUILD", BUILD)
        other.write("t/config.json", json.dumps(CONFIG))
        for site in (other, workspace):  # other tests packaged other sources
            built = site.pants("package", "t:lib")
            assert built.exit_code == 0, built.stderr
    finally:
        other.close()
    for name in ("liblib.so", "manifest.json", "provenance.json"):
        path = f"dist/t/lib/x86_64_v3/{name}"
        assert (other.root / path).read_bytes() == (workspace.root / path).read_bytes()


def test_preselected_sets_are_expanded_for_each_architecture(workspace: Workspace) -> None:
    workspace.write("p/BUILD", 'kernel_set(name="set", archs=["gfx942", "x86_64_v4"], set="fp16_rcr_latency")\n')
    counted = workspace.pants("kernels", "--count", "p:")
    assert counted.exit_code == 0, counted.stderr
    assert [line.split()[0] for line in counted.stdout.splitlines()] == ["gfx942", "x86_64_v4"]
    assert all(int(line.split()[1]) > 0 for line in counted.stdout.splitlines())

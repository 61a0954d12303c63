"""One workspace for all tests that leave its sources as they are: a daemon takes long to start."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest

from e2e.workspace import Workspace

BUILD = """
kernel_set(name="set", archs=["x86_64_v3"], config="config.json")
gemm_kernel(name="one", arch="x86_64_v3", dtype="fp32", layout="ccr", tile=[48, 64, 256], warp_tile=[6, 16, 1])
kernel_library(name="lib", dependencies=[":set", ":one"])
"""
CONFIG = {
    "op": "gemm",
    "tile_config": {
        "tile_m": {"values": [48]},
        "tile_n": {"values": [64, 128]},
        "tile_k": {"values": [256]},
        "warp_tile": {"values": [[6, 16, 1]]},
    },
    "trait_config": {"dtype": {"values": ["fp32"]}, "layout": {"values": ["rrr"]}},
}


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path_factory.mktemp("e2e"))
    workspace.write("t/BUILD", BUILD)
    workspace.write("t/config.json", json.dumps(CONFIG))
    # A kernel that no earlier build has made: the generator must run, so its environment and the compiler are there.
    new = BUILD.replace("tile=[48, 64, 256]", f"tile=[48, 64, {secrets.randbelow(900) + 100}]")
    for build in (new, BUILD):
        workspace.write("t/BUILD", build)
        first = workspace.pants("package", "t:lib")
        assert first.exit_code == 0, first.stderr
    yield workspace
    workspace.close()

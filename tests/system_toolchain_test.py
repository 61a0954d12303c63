"""A library built by ``--host-toolchain system``: the compiler of the build in the part of the machine's own."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import pytest

from kernelwright.codegen.interface.cli import main

SPEC = {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [48, 240, 256], "warp_tile": [6, 16, 1]}
# zig takes processors by its own names; it builds parts of glibc into a cache, which a build by Pants gives it.
SCRIPT = """#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR={cache} ZIG_LOCAL_CACHE_DIR={cache}/local
for word in "$@"; do
  shift
  case "$word" in
    -march=x86-64) word=-mcpu=x86_64 ;;
    -march=x86-64-v3) word=-mcpu=x86_64_v3 ;;
  esac
  set -- "$@" "$word"
done
exec {zig} c++ -target x86_64-linux-gnu.2.28 "$@"
"""


@pytest.mark.thorough(instead="codegen/kernelwright/codegen/toolchains/host_test.py")
def test_the_compiler_of_cxx_builds_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = json.loads(Path(os.environ["KERNELWRIGHT_TREES"]).read_text())
    compiler, own = tmp_path / "c++", Path(__file__).parents[1] / "dispatcher_cpp"
    compiler.write_text(SCRIPT.format(zig=Path(known["zig"], "ziglang/zig").resolve(), cache=tmp_path / "zig"))
    compiler.chmod(0o755)
    own_trees = ("abi", "widths", "gemm", "cpu_common", "cpu_gemm")
    trees = (*own_trees, "shared_launcher", "cpu_common_launcher", "cpu_gemm_launcher")
    (tmp_path / "trees.json").write_text(json.dumps(dict.fromkeys(trees, str(own))))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    monkeypatch.setenv("CXX", str(compiler))
    chosen = ["--arch", "x86_64_v3", "--spec", str(tmp_path / "spec.json"), "--name", "g"]
    out = tmp_path / "out"
    rest = ["--trees", str(tmp_path / "trees.json"), "--out", str(out), "--host-toolchain", "system"]
    assert main(["build", *chosen, *rest]) == 0
    manifest = json.loads((out / "x86_64_v3/manifest.json").read_text())
    assert manifest["toolchains"]["host"].startswith(f"{compiler} ")
    assert ctypes.CDLL(str(out / "x86_64_v3/libg.so")).kw_library_get

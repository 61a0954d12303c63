from __future__ import annotations

from typing import Any

import pytest

from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.violations import SpecError

BASE: dict[str, Any] = {"stage": "compile_commands", "directory": "/checkout/dist/editor"}
INCLUDE = "/checkout/dispatcher_cpp/include"


def described(arch: str, **more: Any) -> dict[str, Any]:
    return respond({**BASE, "archs": [arch], "set": "essential", **more})


def entry(response: dict[str, Any], suffix: str) -> dict[str, Any]:
    (found,) = [one for one in response["entries"] if one["file"].endswith(suffix)]
    return dict(found)


def test_a_cpu_kernel_is_described_for_a_plain_clang() -> None:
    response = described("x86_64_v4", include=INCLUDE, filter="c.dtype == 'bf16' and c.warp_tile_k == 2")
    first = next(one for one in response["entries"] if one["file"].endswith(".hpp"))
    words = first["arguments"]
    assert first["directory"] == BASE["directory"] and first["file"].startswith("x86_64_v4/gemm_bf16_")
    assert words[0] == "clang++" and "--target=x86_64-linux-gnu" in words and "-D__GLIBC_MINOR__=28" in words
    assert f"-I{INCLUDE}" in words and "-march=x86-64-v4" in words and "-mavx512bf16" in words
    assert not any("zig/ziglang/zig" in word or word.startswith("-mcpu") for word in words)
    assert first["file"] in words and {file["path"] for file in response["files"]} >= {first["file"]}


def test_headers_are_those_of_the_workspace_or_of_trees() -> None:
    driver = "kernelwright/cpu/library.cpp"
    ours = described("x86_64_v3", include=f"{INCLUDE}/")
    assert entry(ours, driver)["file"] == f"{INCLUDE}/{driver}" and set(ours["trees"]) == {"zig"}
    packaged = described("x86_64_v3")
    assert entry(packaged, driver)["file"] == f"__cpu/include/{driver}"
    assert {"abi", "cpu", "zig"} <= set(packaged["trees"]) and packaged["trees"]["cpu"]
    assert packaged["trees"]["zig"] == ["ziglang/lib/libcxx/include/**", "ziglang/lib/libc/include/**"]


@pytest.mark.parametrize("arch", ["gfx942", "sm_90a"])
def test_gpu_commands_keep_their_flags(arch: str) -> None:
    response = described(arch)
    kernels = [one for one in response["entries"] if one["file"].endswith(".hpp")]
    assert kernels
    for one in kernels:
        words = one["arguments"]
        assert words[0] == "clang++" and words[words.index("-x") + 1] == ("hip" if arch == "gfx942" else "cuda")
        assert any(arch in word for word in words)


def test_each_source_stands_once_and_nothing_else_does() -> None:
    files = [one["file"] for one in described("gfx942")["entries"]]
    assert files == sorted(set(files))
    assert all(file.endswith((".c", ".cpp", ".hpp")) for file in files)
    assert any(file.endswith("_table.c") for file in files)


def test_a_system_compiler_is_named_as_it_is() -> None:
    choice = {"choice": "system", "path": "/usr/bin/g++", "fingerprint": "f00d"}
    response = described("x86_64_v3", toolchains={"host": choice})
    assert all(one["arguments"][0] == "/usr/bin/g++" for one in response["entries"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"directory": None}, "'directory' must be an absolute path"),
        ({"directory": "dist"}, "'directory' is 'dist'; it is an absolute path"),
        ({"include": "x"}, "'include' is 'x'; it is an absolute path"),
        ({"stage": "expand"}, "'directory' is .*, of 'compile_commands' only"),
    ],
)
def test_wrong_requests_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        described("x86_64_v3", **changes)

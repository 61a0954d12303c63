from __future__ import annotations

from typing import Any

import pytest

from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.violations import SpecError

CPU: dict[str, Any] = {
    "arch": "x86_64_v4",
    "spec": {"op": "gemm", "dtype": "bf16", "layout": "rrr", "tile": [48, 64, 64], "warp_tile": [6, 32, 2]},
}
AMD: dict[str, Any] = {
    "arch": "gfx942",
    "spec": {
        **{"op": "gemm", "dtype": "bf16", "layout": "rcr", "tile": [128, 128, 32], "wave": [2, 2, 1]},
        **{"warp_tile": [32, 32, 16], "pipeline": "compv3", "epilogue": "cshuffle", "scheduler": "intrawave"},
    },
}
NVIDIA: dict[str, Any] = {
    "arch": "sm_90a",
    "spec": {
        **{"op": "gemm", "dtype": "bf16", "layout": "rcr", "tile": [128, 128, 64], "wave": [2, 1, 1]},
        **{"warp_tile": [64, 128, 16], "pipeline": "tma", "epilogue": "tma", "scheduler": "cooperative"},
    },
}
DIRECTORY = "/checkout/dist/compile_commands"


def asked(*kernels: object, **more: object) -> dict[str, Any]:
    return respond({"stage": "compile_commands", "kernels": list(kernels), "directory": DIRECTORY, **more})


def words(response: dict[str, Any], ending: str) -> list[str]:
    (entry,) = [entry for entry in response["commands"] if entry["file"].endswith(ending)]
    assert entry["directory"] == DIRECTORY
    arguments: list[str] = entry["arguments"]
    assert entry["file"] in arguments
    return arguments


def test_a_cpu_kernel_is_described_for_a_plain_clang() -> None:
    response = asked(CPU, include="/checkout/src/include/")
    (header,) = [file["path"] for file in response["files"] if file["path"].endswith(".hpp")]
    arguments = words(response, header)
    assert arguments[0] == "clang++" and "--target=x86_64-linux-gnu" in arguments
    assert {"-I/checkout/src/include", "-march=x86-64-v4", "-mavx512bf16"} <= set(arguments)
    assert not [word for word in arguments if word.startswith("-mcpu=") or word.endswith("ziglang/zig")]
    assert response["trees"] == {"zig": ["ziglang/lib/libcxx/include/**", "ziglang/lib/libc/include/**"]}


@pytest.mark.parametrize(("kernel", "language"), [(AMD, "hip"), (NVIDIA, "cuda")])
def test_a_gpu_kernel_keeps_the_flags_of_its_build(kernel: dict[str, Any], language: str) -> None:
    response = asked(kernel, include="/checkout/src/include")
    header = next(file["path"] for file in response["files"] if file["path"].endswith(".hpp"))
    arguments = words(response, header)
    assert arguments[0] == "clang++" and arguments[arguments.index("-x") + 1] == language
    assert "/checkout/src/include" in " ".join(arguments) and "clang" in response["trees"]


def test_our_own_sources_are_in_the_workspace_or_in_the_trees() -> None:
    packaged, local = asked(CPU), asked(CPU, include="/checkout/src/include")
    sources = [entry["file"] for entry in packaged["commands"] if entry["file"].endswith(".cpp")]
    assert sources
    for source in sources:
        tree, _, path = source.partition("/")
        assert tree.startswith("__cpu") and tree.strip("_") in packaged["trees"]
        assert source in words(packaged, source)
        arguments = words(local, path)
        assert f"/checkout/src/{path}" in arguments and {"-I/checkout/src", "-I/checkout/src/include"} <= set(arguments)


def test_each_c_or_cpp_file_stands_once_and_nothing_else_does() -> None:
    other = {**AMD, "spec": {**AMD["spec"], "tile": [128, 64, 32]}}
    files = [entry["file"] for entry in asked(AMD, other, CPU)["commands"]]
    assert len(files) == len(set(files)) and files == sorted(files)
    assert {file.rpartition(".")[2] for file in files} == {"c", "cpp", "hpp"}


def test_a_system_compiler_keeps_its_commands() -> None:
    system = {"host": {"choice": "system", "path": "/usr/bin/g++", "fingerprint": "ab"}}
    response = asked(CPU, toolchains=system)
    assert {entry["arguments"][0] for entry in response["commands"]} == {"/usr/bin/g++"}


@pytest.mark.parametrize("wrong", [{"directory": "dist"}, {"include": "include"}, {"folder": "/x"}])
def test_a_wrong_request_says_what_is_allowed(wrong: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="allowed: "):
        asked(CPU, **wrong)

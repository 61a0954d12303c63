from __future__ import annotations

from kernelwright.pants.util_rules.actions import Action
from kernelwright.pants.util_rules.compile_commands import entries

ZIG = ("__zig/ziglang/zig", "c++", "-target", "x86_64-linux-gnu.2.28")


def action(*argv: str) -> Action:
    return Action("x", "Compile x", argv, (), (), (), (), (), 1)


def test_a_cpu_kernel_is_described_for_a_plain_clang() -> None:
    (entry,) = entries(
        [action(*ZIG, "-I__cpu_gemm/include", "-mcpu=x86_64_v4+avx512bf16", "-c", "a/k.hpp", "-o", "a/k.o")],
        "/checkout",
        "src/include",
    )
    assert (entry["directory"], entry["file"]) == ("/checkout/dist/compile_commands", "a/k.hpp")
    words = entry["arguments"]
    assert words[0] == "clang++" and "--target=x86_64-linux-gnu" in words
    assert words[-7:] == ["-I/checkout/src/include", "-march=x86-64-v4", "-mavx512bf16", "-c", "a/k.hpp", "-o", "a/k.o"]


def test_a_clang_command_keeps_its_flags() -> None:
    (entry,) = entries([action(ZIG[0], "clang", "-x", "hip", "-S", "k.hpp", "-o", "k.s")], "/checkout", None)
    assert entry["arguments"] == ["clang++", "-x", "hip", "-S", "k.hpp", "-o", "k.s"]


def test_our_own_sources_are_those_of_the_workspace_or_of_the_package() -> None:
    command = action("/usr/bin/g++", "-c", "__cpu_gemm/include/kernelwright/cpu/gemm/launcher.cpp", "-o", "x.o")
    for include, expected in (("src/include", "/checkout/src/include"), (None, "__cpu_gemm/include")):
        (entry,) = entries([command], "/checkout", include)
        assert entry["file"] == f"{expected}/kernelwright/cpu/gemm/launcher.cpp" == entry["arguments"][2]


def test_what_compiles_no_c_is_left_out_and_each_file_stands_once() -> None:
    assembly = action(ZIG[0], "clang", "-c", "k.s", "-o", "k.o")
    link = action(*ZIG, "-shared", "-o", "lib.so", "k.o")
    compile_ = action(*ZIG, "-c", "k.c", "-o", "k.o")
    assert [entry["file"] for entry in entries([assembly, link, compile_, compile_], "/w", None)] == ["k.c"]

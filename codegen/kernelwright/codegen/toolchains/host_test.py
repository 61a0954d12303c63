from __future__ import annotations

import pytest

from kernelwright.codegen.toolchains.host import HostToolchain

COMMON = [
    "-O3",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fomit-frame-pointer",
    "-ffp-contract=on",
]
WARN = ["-Wall", "-Wextra", "-Werror"]
ZIG_ENV = (("ZIG_GLOBAL_CACHE_DIR", "__cache_zig"), ("ZIG_LOCAL_CACHE_DIR", "__local"))


def test_zig_compiles_c_with_this_command_line() -> None:
    command = HostToolchain.zig().compile_c("x/t.c", "x/t.o", flags=["-DA=1"], trees=["abi"])
    assert list(command.argv) == [
        *["__zig/ziglang/zig", "cc", "-target", "x86_64-linux-gnu.2.28", "-std=c99"],
        *COMMON,
        *WARN,
        *["-I__abi/include", "-DA=1", "-c", "x/t.c", "-o", "x/t.o"],
    ]
    assert command.trees == ("zig", "abi")
    assert command.env == ZIG_ENV
    assert command.caches == ("zig",)


def test_zig_compiles_cxx_without_a_cxx_run_time() -> None:
    argv = HostToolchain.zig().compile_cxx("k.hpp", "k.o", trees=["abi", "cpu"]).argv
    assert list(argv[:8]) == [
        *["__zig/ziglang/zig", "c++", "-target", "x86_64-linux-gnu.2.28"],
        *["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"],
    ]
    assert "-I__cpu/include" in argv


def test_zig_links_with_this_command_line() -> None:
    command = HostToolchain.zig().link_shared(["a.o", "b.o"], "libx.so", libraries=["pthread"])
    assert list(command.argv) == [
        *["__zig/ziglang/zig", "cc", "-target", "x86_64-linux-gnu.2.28", "-nostdlib", "-shared", "-s"],
        *["-Wl,--build-id=none", "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,--as-needed"],
        *["-o", "libx.so", "a.o", "b.o", "-lpthread", "-lm", "-lc"],
    ]
    assert command.caches == ("zig",)
    with_run_time = HostToolchain.zig().link_shared(["a.o"], "libx.so", compiler_rt=True)
    assert list(with_run_time.argv[:5]) == [*HostToolchain.zig().cc, "-shared"]
    assert with_run_time.argv[-1] == "a.o"


def test_system_commands_carry_the_fingerprint_and_no_cache() -> None:
    toolchain = HostToolchain.system("/usr/bin/g++", "sha256:12ab")
    command = toolchain.compile_cxx("k.hpp", "k.o")
    assert list(command.argv[:3]) == ["/usr/bin/g++", "-x", "c++"]
    assert ("KERNELWRIGHT_HOST_FINGERPRINT", "sha256:12ab") in command.env
    assert command.trees == () and command.caches == ()
    link = toolchain.link_shared(["a.o"], "libx.so")
    assert link.argv[:2] == ("/usr/bin/g++", "-shared")  # "-x c" would read objects as source
    assert link.argv[-1] == "a.o"  # g++ adds its libraries itself


def test_cpu_flags_speak_each_compilers_language() -> None:
    assert HostToolchain.zig().cpu_flags("x86_64_v4", ["avx512bf16"]) == ("-mcpu=x86_64_v4+avx512bf16",)
    system = HostToolchain.system("/usr/bin/g++", "f")
    assert system.cpu_flags("x86_64_v4", ["avx512bf16"]) == ("-march=x86-64-v4", "-mavx512bf16")
    assert system.cpu_flags("x86_64") == ("-march=x86-64",)


@pytest.mark.parametrize(("path", "fingerprint"), [("g++", "f"), ("bin/g++", "f"), ("/usr/bin/g++", "")])
def test_system_refuses_what_cannot_be_a_key(path: str, fingerprint: str) -> None:
    with pytest.raises(ValueError, match="system compiler"):
        HostToolchain.system(path, fingerprint)


def test_command_becomes_an_action() -> None:
    action = HostToolchain.zig().compile_c("t.c", "t.o").action("t", "Compile t", ["t.c"], ["t.o"])
    assert action.inputs == ("t.c",) and action.outputs == ("t.o",) and action.trees == ("zig",)

from __future__ import annotations

import itertools

import pytest

from kernelwright.codegen.toolchains.hip import HipToolchain


def test_wheel_compiles_with_headers_of_the_wheels_alone() -> None:
    command = HipToolchain.wheel().compile("gfx942/x.hpp", "gfx942/x.s", "gfx942", ("hip_common", "hip_gemm"), 800)
    argv = list(command.argv)
    assert argv[:2] == ["__zig/ziglang/zig", "clang"]
    assert argv[-4:] == ["-S", "gfx942/x.hpp", "-o", "gfx942/x.s"]
    for flag in ("-nostdinc", "-nostdinc++", "-nogpulib", "-nogpuinc", "--offload-device-only", "-fuse-cuid=none"):
        assert flag in argv
    assert "--offload-arch=gfx942" in argv
    assert "-DCK_TILE_FMHA_FWD_FAST_EXP2=1" in argv
    assert "-DCK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK=1" in argv
    folders = [folder for flag, folder in itertools.pairwise(argv) if flag == "-isystem"]
    assert [folder.split("/")[0] for folder in folders] == [
        *("__zig", "__clang"),
        *("__zig",) * 4,
        *("__hip_common", "__ck_tile_lean", "__ck_tile"),
    ]
    assert not any(part.startswith("/") for part in argv)
    assert command.trees == ("zig", "clang", "ck_tile_lean", "ck_tile", "hip_common", "hip_gemm")
    assert command.env == ()
    assert command.memory_mb == 800


def test_stock_compiles_with_the_headers_as_they_are() -> None:
    lean, stock = (
        made.compile("x.hpp", "x.s", "gfx942", ("hip_common",), 800)
        for made in (HipToolchain.wheel(), HipToolchain.stock())
    )
    argv = list(lean.argv)
    at = argv.index("__ck_tile_lean/include")
    assert argv[at - 1] == "-isystem"
    assert [flag for flag in stock.argv if flag != "-DKW_SHIM_STREAMS"] == [*argv[: at - 1], *argv[at + 1 :]]
    assert stock.trees == tuple(tree for tree in lean.trees if tree != "ck_tile_lean")


def test_wheel_assembles_links_and_embeds() -> None:
    hip = HipToolchain.wheel()
    zig = "__zig/ziglang/zig"
    assert hip.assemble("x.s", "x.gpu.o", "gfx950").argv == (
        *(zig, "clang", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-c", "x.s", "-o", "x.gpu.o"),
    )
    assert hip.link("x.gpu.o", "x.co").argv == (
        *(
            zig,
            "ld.lld",
            "-m",
            "elf64_amdgpu",
            "--no-undefined",
            "-shared",
            "-s",
            "--build-id=none",
            "-o",
            "x.co",
            "x.gpu.o",
        ),
    )
    assert hip.embed("x.S", "x.o").argv == (
        *(zig, "clang", "--target=x86_64-linux-gnu", "-x", "assembler", "-c", "x.S", "-o", "x.o"),
    )
    for command in (hip.assemble("a", "b", "gfx942"), hip.link("a", "b"), hip.embed("a", "b")):
        assert (command.trees, command.caches) == (("zig",), ())


def test_rocm_uses_its_own_compiler_headers_and_device_library() -> None:
    rocm = HipToolchain.rocm("/opt/rocm", "ab12")
    command = rocm.compile("x.hpp", "x.s", "gfx90a", ("hip_common", "hip_gemm"), 800)
    assert command.argv == (
        *("/opt/rocm/llvm/bin/clang++", "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output"),
        *("-fuse-cuid=none", "--offload-arch=gfx90a", "--rocm-path=/opt/rocm"),
        *("-isystem", "__ck_tile/aiter_meta/3rdparty/composable_kernel/include"),
        "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
        "-DCK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK=1",
        *("-std=c++17", "-O3", "-DNDEBUG", "-Wall", "-Wextra", "-Werror"),
        *("-I__hip_common/include", "-I__hip_gemm/include"),
        *("-S", "x.hpp", "-o", "x.s"),
    )
    assert command.trees == ("ck_tile", "hip_common", "hip_gemm")
    assert ("KERNELWRIGHT_HIP_FINGERPRINT", "ab12") in command.env
    assert rocm.link("a", "b").argv[0] == "/opt/rocm/llvm/bin/ld.lld"
    assert rocm.identity != HipToolchain.rocm("/opt/rocm", "ab13").identity


@pytest.mark.parametrize(
    ("path", "fingerprint", "words"), [("rocm", "ab", "absolute"), ("/opt/rocm", "", "fingerprint")]
)
def test_rocm_refuses_what_it_cannot_pin(path: str, fingerprint: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HipToolchain.rocm(path, fingerprint)

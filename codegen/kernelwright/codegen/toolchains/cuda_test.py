from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwright.codegen.toolchains.cuda import CudaToolchain

ZIG_ENV = (("ZIG_GLOBAL_CACHE_DIR", "__cache_zig"), ("ZIG_LOCAL_CACHE_DIR", "__local"))
RESOURCES = "__clang/clang_tidy/data/lib/clang/22"
LIBC = "__zig/ziglang/lib/libc/include"
DEFINES = ["-DNDEBUG", "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL", "-std=c++17", "-O3"]
NO_RUNTIME = ["-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
TREES = ("abi", "cuda_src_common")
OWN = ["-I__abi/include", "-I__cuda_src_common/include"]


def without_libcxx(argv: tuple[str, ...]) -> list[str]:
    return [item for item in argv if not item.startswith(("-D_LIBCPP", "-D_ALLOW_UNSUPPORTED"))]


def test_clang_compiles_with_this_command_line() -> None:
    command = CudaToolchain.clang().compile("sm_90a/k.hpp", "sm_90a/k.o", "sm_90a", TREES)
    assert without_libcxx(command.argv) == [
        *["__zig/ziglang/zig", "clang", "-target", "x86_64-linux-gnu"],
        *["-x", "cuda", "--cuda-gpu-arch=sm_90a", "--cuda-path=__cuda/nvidia/cu13"],
        *["-Xcuda-fatbinary", "--compress=false", "-w", "-resource-dir", RESOURCES, "-nostdinc", "-nostdinc++"],
        *["-isystem", f"{RESOURCES}/include/cuda_wrappers"],
        *["-isystem", "__cuda_src_common/include/kernelwright/cuda/common/clang"],
        *["-isystem", "__cuda_src_common/include/kernelwright/cuda/common/quiet"],
        *["-isystem", "__zig/ziglang/lib/libcxx/include", "-isystem", f"{RESOURCES}/include"],
        *["-isystem", f"{LIBC}/x86-linux-gnu", "-isystem", f"{LIBC}/generic-glibc"],
        *["-isystem", f"{LIBC}/x86-linux-any", "-isystem", f"{LIBC}/any-linux-any"],
        *["-isystem", "__cuda/nvidia/cu13/include/cccl", "-isystem", "__cutlass_lean/include"],
        *["-isystem", "__cutlass/cutlass_library/source/include"],
        *["-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"],
        "-DCUTLASS_GRID_CONSTANT=__attribute__((grid_constant))",
        *DEFINES,
        *["-fPIC", "-fvisibility=hidden", *NO_RUNTIME, "-fuse-cuid=none"],
        *OWN,
        *["-c", "sm_90a/k.hpp", "-o", "sm_90a/k.o"],
    ]
    assert command.trees == ("zig", "clang", "cutlass_lean", "cutlass", "cuda", *TREES)
    assert command.env == ZIG_ENV and command.caches == ("zig",)


def test_stock_compiles_with_the_headers_as_they_are() -> None:
    lean, stock = (
        made.compile("k.hpp", "k.o", "sm_90a", TREES) for made in (CudaToolchain.clang(), CudaToolchain.stock())
    )
    at = lean.argv.index("__cutlass_lean/include")
    assert lean.argv[at - 1] == "-isystem"
    assert stock.argv == (*lean.argv[: at - 1], *lean.argv[at + 1 :])
    assert stock.trees == tuple(tree for tree in lean.trees if tree != "cutlass_lean")


def test_other_targets_are_compiled_with_the_headers_as_they_are() -> None:
    """What the rewritten headers leave out is what sm_90a has no use for."""
    lean = CudaToolchain.clang().compile("k.hpp", "k.o", "sm_100a", TREES)
    assert lean == CudaToolchain.stock().compile("k.hpp", "k.o", "sm_100a", TREES)
    assert "--cuda-gpu-arch=sm_100a" in lean.argv


def test_nvcc_compiles_with_this_command_line() -> None:
    command = CudaToolchain.nvcc("/usr/bin/g++", "sha256:12ab").compile("k.hpp", "k.o", "sm_90a", TREES)
    assert list(command.argv) == [
        *["__cuda/nvidia/cu13/bin/nvcc", "-ccbin", "/usr/bin/g++"],
        *["-x", "cu", "-gencode=arch=compute_90a,code=sm_90a", "--no-compress", "--expt-relaxed-constexpr", "-w"],
        *["-Xcompiler=-fPIC", "-Xcompiler=-fvisibility=hidden", *(f"-Xcompiler={flag}" for flag in NO_RUNTIME[1:])],
        *["-isystem", "__cuda_src_common/include/kernelwright/cuda/common/quiet"],
        *["-isystem", "__cuda/nvidia/cu13/include/cccl"],
        *["-isystem", "__cutlass/cutlass_library/source/include"],
        *DEFINES,
        *["--keep", "--keep-dir", "."],
        *OWN,
        *["-c", "k.hpp", "-o", "k.o"],
    ]
    assert ("KERNELWRIGHT_CUDA_FINGERPRINT", "sha256:12ab") in command.env
    assert "zig" not in command.trees and command.caches == ()


def test_files_of_nvcc_are_named_after_the_source_and_not_after_its_process() -> None:
    for toolchain in (CudaToolchain.nvcc("/usr/bin/g++", "a"), CudaToolchain.system_nvcc("/usr/bin/nvcc", "a")):
        words = toolchain.compile("sm_90a/k.hpp", "sm_90a/k.o", "sm_90a", TREES).argv
        assert words[words.index("--keep") :][:3] == ("--keep", "--keep-dir", "sm_90a")  # a folder that is there
    assert "--keep" not in CudaToolchain.clang().compile("k.hpp", "k.o", "sm_90a", TREES).argv


@pytest.mark.skipif(not (shutil.which("nvcc") and shutil.which("g++")), reason="no nvcc or no g++")
def test_nvcc_gives_the_same_bytes_twice(tmp_path: Path) -> None:
    objects = set()
    for name in ("one", "two"):
        folder = tmp_path / name / "sm_90a"
        folder.mkdir(parents=True)
        (folder / "k.hpp").write_text('extern "C" __global__ void k(int* p) { *p = 1; }\n')
        toolchain = CudaToolchain.system_nvcc(shutil.which("nvcc") or "", "f")
        command = [word for word in toolchain.compile("sm_90a/k.hpp", "sm_90a/k.o", "sm_90a", ()).argv]
        subprocess.run(command, cwd=folder.parent, check=True, timeout=300)
        objects.add((folder / "k.o").read_bytes())
    assert len(objects) == 1


def test_system_nvcc_is_called_where_it_is() -> None:
    toolchain = CudaToolchain.system_nvcc("/usr/local/cuda/bin/nvcc", "sha256:12ab")
    wheel = CudaToolchain.nvcc("/usr/bin/g++", "sha256:12ab")
    command, other = (t.compile("k.hpp", "k.o", "sm_90a", TREES) for t in (toolchain, wheel))
    assert command.argv == ("/usr/local/cuda/bin/nvcc", *other.argv[3:])
    assert "sha256:12ab" in toolchain.identity


def test_headers_of_a_wheel_are_found_where_it_has_them() -> None:
    trees = (*TREES, "cuda_src_attention", "flashinfer_edited", "flashinfer")
    command = CudaToolchain.clang().compile("k.hpp", "k.o", "sm_90a", trees)
    assert [item for item in command.argv if item.startswith("-I")] == [
        *OWN,
        *("-I__cuda_src_attention/include", "-I__flashinfer_edited/include"),  # ahead of the originals
        "-I__flashinfer/flashinfer/data/include",
    ]
    assert set(trees) <= set(command.trees)


def test_identities_differ() -> None:
    toolchains = [
        CudaToolchain.clang(),
        CudaToolchain.nvcc("/usr/bin/g++", "a"),
        CudaToolchain.nvcc("/usr/bin/g++", "b"),
        CudaToolchain.system_nvcc("/usr/bin/nvcc", "a"),
    ]
    assert len({toolchain.identity for toolchain in toolchains}) == 4


@pytest.mark.parametrize(("path", "fingerprint"), [("nvcc", "f"), ("bin/nvcc", "f"), ("/usr/bin/nvcc", "")])
def test_what_cannot_be_a_key_is_refused(path: str, fingerprint: str) -> None:
    with pytest.raises(ValueError, match="nvcc"):
        CudaToolchain.system_nvcc(path, fingerprint)
    with pytest.raises(ValueError, match="host compiler"):
        CudaToolchain.nvcc(path, fingerprint)

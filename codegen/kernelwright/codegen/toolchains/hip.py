"""The HIP toolchain: compiles CK Tile kernels to AMD GPU code objects and wraps those for the host linker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelwright.codegen.toolchains.host import Command, check_system_tool
from kernelwright.codegen.toolchains.wheels import versions

# Some of CK Tile's headers, rewritten to compile faster (kernelwright.codegen.lean); searched before the others.
LEAN_INCLUDE = "__ck_tile_lean/include"
CK_TILE_INCLUDE = "__ck_tile/aiter_meta/3rdparty/composable_kernel/include"
_SHIM = "__hip_common/include/kernelwright/hip/common/shim"

# zig ships libc++ without its generated __config_site, so its settings are given here.
_LIBCXX = (
    "_LIBCPP_ABI_NAMESPACE=__1",
    "_LIBCPP_ABI_VERSION=1",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    "_LIBCPP_HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE",
    "_LIBCPP_HAS_FILESYSTEM=1",
    "_LIBCPP_HAS_LOCALIZATION=1",
    "_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "_LIBCPP_HAS_MUSL_LIBC=1",
    "_LIBCPP_HAS_RANDOM_DEVICE=1",
    "_LIBCPP_HAS_TERMINAL=1",
    "_LIBCPP_HAS_THREADS=1",
    "_LIBCPP_HAS_THREAD_API_PTHREAD=1",
    "_LIBCPP_HAS_TIME_ZONE_DATABASE=0",
    "_LIBCPP_HAS_UNICODE=1",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "_LIBCPP_HAS_WIDE_CHARACTERS=1",
    "_LIBCPP_PSTL_BACKEND_SERIAL",
)
# Order matters: C++ library, compiler, C library, then HIP and CK Tile. The C headers only declare.
_WHEEL_INCLUDES = (
    "__zig/ziglang/lib/libcxx/include",
    "__clang/clang_tidy/data/lib/clang/22/include",
    "__zig/ziglang/lib/libc/include/x86_64-linux-musl",
    "__zig/ziglang/lib/libc/include/generic-musl",
    "__zig/ziglang/lib/libc/include/x86-linux-any",
    "__zig/ziglang/lib/libc/include/any-linux-any",
    _SHIM,
)
# No bundle and no unit id: the output is one plain file with the same bytes in every folder.
_DEVICE = ("-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-fuse-cuid=none")
_CK_TILE = (
    # Without it CK Tile's attention pipeline with transposing LDS reads computes exp2 of numbers meant for exp
    # (block_fmha_pipeline_qr_ks_vs_async_trload.hpp, MakeKargs in fmha_fwd_kernel.hpp): wrong results.
    "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
    # Padded loads add 2^31 to the offset of what lies outside, so that the buffer's range check returns zeros; without
    # it vector instructions zero what was loaded, element by element: most of those in a main loop of GEMM
    # (docs/counts.md). It needs buffers and offsets below 2^31 bytes, which the launchers' rules see to. Upstream's
    # default since ROCm/rocm-libraries PR 7466.
    "-DCK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK=1",
)
# Kernels of all pipelines and architectures peaked at 260 to 345 MB; with the original headers, at 492 to 691 MB.
_LEAN_MB, _STOCK_MB = 384, 768
# With C++20 the front end takes a tenth longer for the same code objects.
_LANGUAGE = ("-std=c++17", "-O3", "-DNDEBUG", "-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True)
class HipToolchain:
    """A clang that knows AMD GPUs, its linker, and the headers that a device pass of CK Tile sees.

    ``id`` names the choice, ``identity`` says exactly what was chosen; both end in the manifest. ``compile_mb`` is the
    memory in MB to reserve for the compile of a kernel. Build one with :meth:`wheel`, :meth:`stock` or :meth:`rocm`.
    """

    id: str
    identity: str
    clang: tuple[str, ...]
    lld: tuple[str, ...]
    headers: tuple[str, ...]
    compile_trees: tuple[str, ...]
    tool_trees: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    compile_mb: int

    @classmethod
    def wheel(cls) -> HipToolchain:
        """clang 22 and lld from the ziglang wheel with our own HIP declarations: no ROCm, no system header."""
        return cls._of_wheels("wheel", (LEAN_INCLUDE, CK_TILE_INCLUDE), ("ck_tile_lean", "ck_tile"), _LEAN_MB)

    @classmethod
    def stock(cls) -> HipToolchain:
        """The same with CK Tile's original headers: the same device code, in about twice the time and memory."""
        stock = cls._of_wheels("stock", (CK_TILE_INCLUDE,), ("ck_tile",), _STOCK_MB)
        return replace(stock, headers=(*stock.headers, "-DKW_SHIM_STREAMS"))

    @classmethod
    def _of_wheels(cls, id: str, includes: tuple[str, ...], trees: tuple[str, ...], compile_mb: int) -> HipToolchain:
        zig = "__zig/ziglang/zig"
        return cls(
            id=id,
            identity=versions("ziglang", "clang-tidy", "amd-aiter"),
            clang=(zig, "clang"),
            lld=(zig, "ld.lld"),
            headers=(
                *("-nogpulib", "-nogpuinc", "-nostdinc", "-nostdinc++"),
                *(f"-D{setting}" for setting in _LIBCXX),
                *(part for folder in (*_WHEEL_INCLUDES, *includes) for part in ("-isystem", folder)),
            ),
            compile_trees=("zig", "clang", *trees),
            tool_trees=("zig",),
            env=(),
            compile_mb=compile_mb,
        )

    @classmethod
    def rocm(cls, path: str, fingerprint: str) -> HipToolchain:
        """Compiler, HIP headers and device library of the ROCm at the absolute ``path``; CK Tile stays pinned.

        CK Tile's original headers are used: this compiler's output with the rewritten ones was never compared.

        ``fingerprint`` is a digest over the compiler's bytes and version output. It is part of every command's
        environment, so that another ROCm at the same path misses every cache.

        Raises ValueError if ``path`` is not absolute or ``fingerprint`` is empty.
        """
        check_system_tool("ROCm", path, fingerprint, example="/opt/rocm")
        return cls(
            id="rocm",
            identity=f"{path} {fingerprint}, {versions('amd-aiter')}",
            clang=(f"{path}/llvm/bin/clang++",),
            lld=(f"{path}/llvm/bin/ld.lld",),
            headers=(f"--rocm-path={path}", "-isystem", CK_TILE_INCLUDE),
            compile_trees=("ck_tile",),
            tool_trees=(),
            env=(("PATH", "/usr/bin:/bin"), ("KERNELWRIGHT_HIP_FINGERPRINT", fingerprint)),
            compile_mb=_STOCK_MB,
        )

    def with_stock_headers(self) -> HipToolchain:
        """Return the same compiler with CK Tile's original headers."""
        if self.id != "wheel":  # it uses them already
            return self
        stock = self.stock()
        return replace(self, headers=stock.headers, compile_trees=stock.compile_trees, compile_mb=stock.compile_mb)

    def memory_mb(self, lean_mb: int | None) -> int:
        """The MB to reserve for a compile that takes ``lean_mb`` with the rewritten headers; None: the usual amount."""
        return self.compile_mb * (lean_mb or _LEAN_MB) // _LEAN_MB

    def for_editor(self) -> HipToolchain:
        """The same toolchain with commands for an editor's own clang."""
        return self if self.id == "rocm" else replace(self, clang=("clang++",))

    def compile(self, source: str, output: str, target: str, trees: Sequence[str], memory_mb: int) -> Command:
        """Compile the header ``source`` to device assembly for ``target`` (``gfx942``): code and its metadata.

        ``__<tree>/include`` of each tree in ``trees`` is searched; ``hip_common`` is among them.
        """
        includes = tuple(f"-I__{tree}/include" for tree in trees)
        argv = (*self.clang, *_DEVICE, f"--offload-arch={target}", *self.headers, *_CK_TILE, *_LANGUAGE, *includes)
        command = self._command((*argv, "-S", source, "-o", output), (*self.compile_trees, *trees), memory_mb)
        return replace(command, source=source)

    def assemble(self, source: str, output: str, target: str) -> Command:
        """Assemble device assembly to a relocatable object, with the code and data of a direct compile to an object."""
        argv = (*self.clang, "--target=amdgcn-amd-amdhsa", f"-mcpu={target}")
        return self._command((*argv, "-c", source, "-o", output), self.tool_trees, 160)

    def link(self, source: str, output: str) -> Command:
        """Link a relocatable object to a code object that the HIP runtime loads."""
        argv = (*self.lld, "-m", "elf64_amdgpu", "--no-undefined", "-shared", "-s", "--build-id=none")
        return self._command((*argv, "-o", output, source), self.tool_trees, 160)

    def embed(self, source: str, output: str) -> Command:
        """Assemble host assembly that includes a code object to a host object.

        Not done by the host toolchain: zig caches objects by the text of their source and would miss a new code object.
        """
        argv = (*self.clang, "--target=x86_64-linux-gnu", "-x", "assembler")
        return self._command((*argv, "-c", source, "-o", output), self.tool_trees, 160)

    def _command(self, argv: tuple[str, ...], trees: tuple[str, ...], memory_mb: int) -> Command:
        return Command(argv, trees, self.env, (), memory_mb)

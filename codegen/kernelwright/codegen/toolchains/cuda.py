"""The CUDA toolchain: compiles one source into an object that holds device code and its host side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelwright.codegen.lean import cutlass_archs
from kernelwright.codegen.toolchains.host import TARGET, Command, check_system_tool
from kernelwright.codegen.toolchains.wheels import versions

CUDA = "__cuda/nvidia/cu13"
_CLANG = "__clang/clang_tidy/data/lib/clang/22"
_ZIG_LIB = "__zig/ziglang/lib"
_SHIMS = "__cuda_src_common/include/kernelwright/cuda/common"
_CUTLASS = "__cutlass/cutlass_library/source/include"
# Some of CUTLASS's headers, rewritten to compile faster (kernelwright.codegen.lean); searched before the others.
_LEAN_TREE = "cutlass_lean"
_LEAN = f"__{_LEAN_TREE}/include"
_TREES = ("cutlass", "cuda")
# Memory in MB to reserve for a compile. Kernels of the essential set peaked at 1,046, 1,316 and 3,195 MB.
_LEAN_MB, _STOCK_MB, _NVCC_MB = 1152, 1400, 3300
# Include folders of other wheels in the trees that an operation's kernels see.
_WHEEL_INCLUDES = {"flashinfer": "__flashinfer/flashinfer/data/include"}

# libc++ is configured by a header that the zig driver generates; in CUDA mode its contents come from here.
_LIBCXX = (
    "-D_LIBCPP_HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    "-D_LIBCPP_ABI_VERSION=1",
    "-D_LIBCPP_ABI_NAMESPACE=__1",
    "-D_LIBCPP_HAS_MUSL_LIBC=0",
    "-D_LIBCPP_HAS_THREADS=1",
    "-D_LIBCPP_HAS_THREAD_API_PTHREAD=1",
    "-D_LIBCPP_HAS_LOCALIZATION=1",
    "-D_LIBCPP_HAS_WIDE_CHARACTERS=1",
    "-D_LIBCPP_HAS_UNICODE=1",
    "-D_LIBCPP_HAS_FILESYSTEM=1",
    "-D_LIBCPP_HAS_RANDOM_DEVICE=1",
    "-D_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "-D_LIBCPP_HAS_TERMINAL=1",
    "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "-D_LIBCPP_HAS_TIME_ZONE_DATABASE=0",
    "-D_LIBCPP_PSTL_BACKEND_SERIAL",
    "-D_LIBCPP_REMOVE_TRANSITIVE_INCLUDES",  # for programs that rely on transitive includes
    "-D_ALLOW_UNSUPPORTED_LIBCPP",  # clang's CUDA wrappers expect libstdc++ or libc++ of their own installation
)
# The driver entry point is runtime.c's (see there). No C++ run-time: the library is linked as C.
_COMMON = ("-DNDEBUG", "-DCUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL", "-std=c++17", "-O3")
_NO_RUNTIME = ("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")


@dataclass(frozen=True)
class CudaToolchain:
    """A compiler for CUDA C++ with CUTLASS.

    Build one with :meth:`clang`, :meth:`stock`, :meth:`nvcc` or :meth:`system_nvcc`.

    ``id`` names the choice, ``identity`` says exactly what was chosen; both end in the manifest.
    """

    id: str
    identity: str
    dialect: Literal["clang", "nvcc"]
    driver: tuple[str, ...]
    trees: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    caches: tuple[str, ...]

    @classmethod
    def clang(cls) -> CudaToolchain:
        """clang 22 from the ziglang wheel, ptxas and CUDA headers from NVIDIA's wheels: the default."""
        return cls(
            id="clang",
            identity=f"{versions('ziglang', 'clang-tidy')} headers, {_wheels()}",
            dialect="clang",
            driver=("__zig/ziglang/zig", "clang", "-target", TARGET.split(".")[0]),
            trees=("zig", "clang", _LEAN_TREE, *_TREES),
            env=(("ZIG_GLOBAL_CACHE_DIR", "__cache_zig"), ("ZIG_LOCAL_CACHE_DIR", "__local")),
            caches=("zig",),
        )

    @classmethod
    def stock(cls) -> CudaToolchain:
        """The same with CUTLASS's original headers: the same objects, in about one and a half times the time."""
        return replace(cls.clang(), id="stock", trees=("zig", "clang", *_TREES))

    @classmethod
    def nvcc(cls, host_compiler: str, fingerprint: str) -> CudaToolchain:
        """nvcc from NVIDIA's wheels with the machine's ``g++`` at the absolute path ``host_compiler``.

        ``fingerprint`` is a digest over the host compiler's bytes and version output; it is part of every command's
        environment. Raises ValueError if the path is not absolute or the fingerprint is empty.
        """
        check_system_tool("host compiler", host_compiler, fingerprint, example="/usr/bin/g++")
        return cls(
            id="nvcc",
            identity=f"{_wheels()}, {host_compiler} {fingerprint}",
            dialect="nvcc",
            driver=(f"{CUDA}/bin/nvcc", "-ccbin", host_compiler),
            trees=_TREES,
            env=_system_env(fingerprint),
            caches=(),
        )

    @classmethod
    def system_nvcc(cls, path: str, fingerprint: str) -> CudaToolchain:
        """The machine's own nvcc at the absolute ``path``, with the host compiler that it finds.

        ``fingerprint`` is a digest over both compilers' bytes and version output; it is part of every command's
        environment. Raises ValueError if the path is not absolute or the fingerprint is empty.
        """
        check_system_tool("nvcc", path, fingerprint, example="/usr/local/cuda/bin/nvcc")
        return cls(
            id="system-nvcc",
            identity=f"{path} {fingerprint}, {versions('nvidia-cutlass')}",
            dialect="nvcc",
            driver=(path,),
            trees=_TREES,  # the library still links the wheel's static runtime
            env=_system_env(fingerprint),
            caches=(),
        )

    def for_editor(self) -> CudaToolchain:
        """The same toolchain with commands for an editor's own clang."""
        return replace(self, driver=("clang++", *self.driver[2:])) if self.dialect == "clang" else self

    def compile(
        self, source: str, output: str, target: str, trees: Sequence[str], lean_mb: int | None = None
    ) -> Command:
        """Compile CUDA C++ ``source`` to the host object ``output`` with device code for ``target`` (``sm_90a``).

        ``__<tree>/include`` of each tree in ``trees`` is searched in order; ``cuda_src_common`` is among them.

        Device code is stored uncompressed, so that :mod:`kernelwright.codegen.resources.cutlass` can read it.
        ``lean_mb`` is the memory that it takes with the rewritten headers; None: the usual amount. Rewritten headers
        are for one target; others are compiled with the wheel's own.
        """
        if target != cutlass_archs.TARGET and _LEAN_TREE in self.trees:
            own = tuple(tree for tree in self.trees if tree != _LEAN_TREE)
            return replace(self, trees=own).compile(source, output, target, trees, lean_mb)
        flags = self._clang_flags(target) if self.dialect == "clang" else self._nvcc_flags(target)
        includes = tuple(f"-I{_WHEEL_INCLUDES.get(tree, f'__{tree}/include')}" for tree in trees)
        argv = (*self.driver, *flags, *self._kept(source), *includes, "-c", source, "-o", output)
        memory_mb = self._compile_mb * (lean_mb or _LEAN_MB) // _LEAN_MB
        return Command(argv, (*self.trees, *trees), self.env, self.caches, memory_mb, source)

    def _kept(self, source: str) -> tuple[str, ...]:
        """Options that make nvcc name its files after the source and keep them beside it.

        Otherwise their names contain its process ID, and the object has one of them as a symbol, so that its bytes
        vary.
        """
        folder = source.rpartition("/")[0] or "."
        return ("--keep", "--keep-dir", folder) if self.dialect == "nvcc" else ()

    @property
    def _compile_mb(self) -> int:
        if self.dialect == "nvcc":
            return _NVCC_MB
        return _LEAN_MB if _LEAN_TREE in self.trees else _STOCK_MB

    def _clang_flags(self, target: str) -> tuple[str, ...]:
        return (
            *("-x", "cuda", f"--cuda-gpu-arch={target}", f"--cuda-path={CUDA}", "-Xcuda-fatbinary", "--compress=false"),
            *("-w", "-resource-dir", _CLANG, "-nostdinc", "-nostdinc++", *_LIBCXX),
            *_system_includes(
                f"{_CLANG}/include/cuda_wrappers",
                f"{_SHIMS}/clang",
                f"{_SHIMS}/quiet",
                f"{_ZIG_LIB}/libcxx/include",
                f"{_CLANG}/include",
                f"{_ZIG_LIB}/libc/include/x86-linux-gnu",
                f"{_ZIG_LIB}/libc/include/generic-glibc",
                f"{_ZIG_LIB}/libc/include/x86-linux-any",
                f"{_ZIG_LIB}/libc/include/any-linux-any",
                f"{CUDA}/include/cccl",
                *((_LEAN,) if _LEAN_TREE in self.trees else ()),
                _CUTLASS,
            ),
            *("-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"),
            # Without it the parameters, TMA descriptors among them, are copied to 1,904 bytes of stack.
            "-DCUTLASS_GRID_CONSTANT=__attribute__((grid_constant))",
            *_COMMON,
            *("-fPIC", "-fvisibility=hidden", *_NO_RUNTIME),
            "-fuse-cuid=none",  # otherwise a hash of path and options becomes a symbol of the object
        )

    def _nvcc_flags(self, target: str) -> tuple[str, ...]:
        number = target.removeprefix("sm_")
        # g++ rejects CUTLASS's throw statements under -fno-exceptions; all of them are folded away, none is linked.
        host = ("-fPIC", "-fvisibility=hidden", "-fno-rtti", "-fno-threadsafe-statics")
        return (
            *("-x", "cu", f"-gencode=arch=compute_{number},code={target}", "--no-compress"),
            *("--expt-relaxed-constexpr", "-w", *(f"-Xcompiler={flag}" for flag in host)),
            *_system_includes(f"{_SHIMS}/quiet", f"{CUDA}/include/cccl", _CUTLASS),
            *_COMMON,
        )


def _wheels() -> str:
    return versions("nvidia-cuda-nvcc", "nvidia-cuda-runtime", "nvidia-cutlass")


def _system_includes(*folders: str) -> tuple[str, ...]:
    return tuple(part for folder in folders for part in ("-isystem", folder))


def _system_env(fingerprint: str) -> tuple[tuple[str, str], ...]:
    return (("PATH", "/usr/bin:/bin"), ("KERNELWRIGHT_CUDA_FINGERPRINT", fingerprint))

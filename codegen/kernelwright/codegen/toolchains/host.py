"""The host toolchain: compiles C and C++ for the CPU that loads kernel libraries, and links every library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from kernelwright.codegen.actions import Action
from kernelwright.codegen.toolchains.wheels import versions
from kernelwright.codegen.trees import include_folder

# The oldest glibc that a library loads on: RHEL 8, Debian 10 and everything newer.
TARGET = "x86_64-linux-gnu.2.28"

_COMMON = (
    "-O3",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fomit-frame-pointer",
    "-ffp-contract=on",
)
_WARNINGS = ("-Wall", "-Wextra", "-Werror")
# No C++ run-time is linked: exceptions, type information and guarded statics would leave undefined symbols.
_CXX = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")

# Options that zig's driver adds itself. libc comes after the headers of the editor's compiler, as in every clang.
_ZIG_LIBC = "__zig/ziglang/lib/libc/include"
_ZIG_HOST = (
    *("--target=x86_64-linux-gnu", "-nostdlibinc", "-D__GLIBC_MINOR__=28"),
    *(f"-idirafter{_ZIG_LIBC}/{part}" for part in ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")),
)
_ZIG_CXX = (
    *("-nostdinc++", "-isystem", "__zig/ziglang/lib/libcxx/include"),
    *("-D_LIBCPP_ABI_VERSION=1", "-D_LIBCPP_ABI_NAMESPACE=__1", "-D_LIBCPP_PSTL_BACKEND_SERIAL"),
    "-D_LIBCPP_HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    *(f"-D_LIBCPP_HAS_{name}=0" for name in ("MUSL_LIBC", "VENDOR_AVAILABILITY_ANNOTATIONS", "TIME_ZONE_DATABASE")),
    *(
        f"-D_LIBCPP_HAS_{name}=1"
        for name in (
            *("THREADS", "THREAD_API_PTHREAD", "LOCALIZATION", "WIDE_CHARACTERS", "UNICODE", "FILESYSTEM"),
            *("RANDOM_DEVICE", "MONOTONIC_CLOCK", "TERMINAL"),
        )
    ),
)


@dataclass(frozen=True)
class Command:
    """An :class:`Action` without its identity and files."""

    argv: tuple[str, ...]
    trees: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    caches: tuple[str, ...]
    memory_mb: int
    source: str | None = None

    def action(self, id: str, description: str, inputs: Sequence[str], outputs: Sequence[str]) -> Action:
        """Return the command as an action of a plan."""
        return Action(
            id=id,
            description=description,
            argv=self.argv,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            trees=self.trees,
            env=self.env,
            caches=self.caches,
            memory_mb=self.memory_mb,
            source=self.source,
        )


@dataclass(frozen=True)
class HostToolchain:
    """A C and C++ compiler for x86-64 Linux.

    ``id`` names the choice, ``identity`` says exactly what was chosen; both end in the manifest. Build one with
    :meth:`zig` or :meth:`system`.
    """

    id: str
    identity: str
    cc: tuple[str, ...]
    cxx: tuple[str, ...]
    trees: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    caches: tuple[str, ...]

    @classmethod
    def zig(cls) -> HostToolchain:
        """clang 22 and lld from the ziglang wheel: the default, the same bytes on every machine."""
        zig = "__zig/ziglang/zig"
        # zig reuses objects of earlier compiles in its local cache without checking them: each command gets its own.
        # The shared one holds the parts of glibc that links need, which take half a second to make.
        return cls(
            id="zig",
            identity=f"{versions('ziglang')} {TARGET}",
            cc=(zig, "cc", "-target", TARGET),
            cxx=(zig, "c++", "-target", TARGET),
            trees=("zig",),
            env=(("ZIG_GLOBAL_CACHE_DIR", "__cache_zig"), ("ZIG_LOCAL_CACHE_DIR", "__local")),
            caches=("zig",),
        )

    @classmethod
    def system(cls, path: str, fingerprint: str) -> HostToolchain:
        """The machine's own ``g++`` or ``clang++`` at the absolute ``path``.

        ``fingerprint`` is a digest over the compiler's bytes and version output. It is part of every command's
        environment, so that another compiler at the same path misses every cache.

        Raises ValueError if ``path`` is not absolute or ``fingerprint`` is empty.
        """
        check_system_tool("system compiler", path, fingerprint, example="/usr/bin/g++")
        return cls(
            id="system",
            identity=f"{path} {fingerprint}",
            cc=(path, "-x", "c"),
            cxx=(path, "-x", "c++"),
            trees=(),
            env=(("PATH", "/usr/bin:/bin"), ("KERNELWRIGHT_HOST_FINGERPRINT", fingerprint)),
            caches=(),
        )

    def for_editor(self) -> HostToolchain:
        """The same toolchain with commands for an editor's own clang, which zig's driver does not configure."""
        if self.id != "zig":
            return self
        return replace(self, id="clang", cc=("clang", *_ZIG_HOST), cxx=("clang++", *_ZIG_CXX, *_ZIG_HOST))

    def cpu_flags(self, level: str, features: Sequence[str] = ()) -> tuple[str, ...]:
        """The flags for an x86-64 ``level`` (``x86_64_v3``) plus compiler features (``avx512bf16``, ``amx_tile``)."""
        if self.id == "zig":
            return ("-mcpu=" + "+".join((level, *features)),)
        return ("-march=" + level.replace("_", "-"), *(f"-m{feature.replace('_', '-')}" for feature in features))

    def compile_c(
        self, source: str, output: str, flags: Sequence[str] = (), trees: Sequence[str] = (), memory_mb: int = 128
    ) -> Command:
        """Compile C99 ``source`` to the object ``output``; searches the ``include_folder`` of each of ``trees``."""
        return self._compile((*self.cc, "-std=c99"), source, output, flags, trees, memory_mb)

    def compile_cxx(
        self, source: str, output: str, flags: Sequence[str] = (), trees: Sequence[str] = (), memory_mb: int = 256
    ) -> Command:
        """Compile C++17 ``source`` to the object ``output``; searches the ``include_folder`` of each of ``trees``.

        The source must not need a C++ run-time library: no exceptions, type information or iostream.
        """
        return self._compile((*self.cxx, *_CXX), source, output, flags, trees, memory_mb)

    def link_shared(
        self, objects: Sequence[str], output: str, libraries: Sequence[str] = (), compiler_rt: bool = False
    ) -> Command:
        """Link ``objects`` into the stripped shared library ``output`` with C ``libraries`` (``pthread``, ``dl``).

        Linked as C: an object that needs a C++ run-time symbol is an error, and so is one that needs a compiler
        run-time symbol (``__udivti3``), unless ``compiler_rt`` is set. Only symbols of default visibility are exported.
        """
        # zig builds the compiler's run-time in each new cache: 9 CPU s for the first link of a machine, and for every
        # link by a worker that keeps no caches.
        zig = self.id == "zig"
        bare = zig and not compiler_rt
        driver = self.cc if zig else self.cc[:1]
        argv = (
            *driver,
            *(("-nostdlib",) if bare else ()),
            *("-shared", "-s", "-Wl,--build-id=none", "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,--as-needed"),
            *("-o", output),
            *objects,
            *(f"-l{library}" for library in (*libraries, *(("m", "c") if bare else ()))),
        )
        # The first link of a machine builds glibc's stub libraries into the cache; its peak was measured.
        return Command(argv, self.trees, self.env, self.caches, memory_mb=384)

    def group(self, objects: Sequence[str], output: str) -> Action:
        """Combine ``objects`` into the one relocatable object ``output``, which a later link takes in their place."""
        linker = (self.cc[0], "ld.lld", "-m", "elf_x86_64") if self.id == "zig" else (self.cc[0], "-nostdlib")
        command = Command((*linker, "-r", "-o", output, *objects), self.trees, self.env, self.caches, memory_mb=256)
        return command.action(f"group {output}", f"Group {output}", objects, [output])

    def _compile(
        self,
        driver: tuple[str, ...],
        source: str,
        output: str,
        flags: Sequence[str],
        trees: Sequence[str],
        memory_mb: int,
    ) -> Command:
        includes = tuple(f"-I{include_folder(tree)}" for tree in trees)
        argv = (*driver, *_COMMON, *_WARNINGS, *includes, *flags, "-c", source, "-o", output)
        return Command(argv, (*self.trees, *trees), self.env, self.caches, memory_mb, source)


def check_system_tool(what: str, path: str, fingerprint: str, *, example: str) -> None:
    """Raise ValueError unless a tool of the machine is given by an absolute path and a fingerprint."""
    if not PurePosixPath(path).is_absolute():
        raise ValueError(f"{what} {path!r}: not an absolute path; give one such as {example}")
    if not fingerprint:
        raise ValueError(f"{what} {path!r}: empty fingerprint; give a digest of the compiler's bytes")

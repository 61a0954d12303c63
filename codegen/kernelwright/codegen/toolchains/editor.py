"""Commands of our toolchains as an editor understands them: a clangd that does not come with zig's driver."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.codegen.toolchains.cuda import LIBCXX
from kernelwright.codegen.toolchains.host import TARGET

_ZIG = "__zig/ziglang/zig"
_LIBC = "__zig/ziglang/lib/libc/include"
_GLIBC_MINOR = TARGET.rpartition(".")[2]
# zig finds these by itself. libc comes after the editor's own headers of the compiler, as in every clang.
_HOST = (
    *(f"--target={TARGET.split('.')[0]}", "-nostdlibinc", f"-D__GLIBC_MINOR__={_GLIBC_MINOR}"),
    *(f"-idirafter{_LIBC}/{part}" for part in ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")),
)
_CXX = ("-nostdinc++", "-isystem", "__zig/ziglang/lib/libcxx/include", *LIBCXX)
# How commands of ours start, and how those of a plain clang do.
_DRIVERS = {
    (_ZIG, "cc", "-target", TARGET): ("clang", *_HOST),
    (_ZIG, "c++", "-target", TARGET): ("clang++", *_CXX, *_HOST),
    (_ZIG, "clang"): ("clang++",),
}


def for_clang(argv: Sequence[str]) -> list[str]:
    """The same compile for a plain clang; commands of other drivers stay as they are."""
    for ours, plain in _DRIVERS.items():
        if tuple(argv[: len(ours)]) == ours:
            return [*plain, *(flag for word in argv[len(ours) :] for flag in _cpu_flags(word))]
    return list(argv)


def _cpu_flags(word: str) -> tuple[str, ...]:
    """zig writes ``-mcpu=x86_64_v4+avx512bf16``, clang ``-march=x86-64-v4 -mavx512bf16``."""
    if not word.startswith("-mcpu=x86_64"):
        return (word,)
    level, *features = word.removeprefix("-mcpu=").split("+")
    return (f"-march={level.replace('_', '-')}", *(f"-m{feature}" for feature in features))

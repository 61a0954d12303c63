"""Describe the compiles of kernels to editors: a clangd or an IDE of this machine, with the toolchains' own headers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional

from kernelwright.pants.engine import digests
from kernelwright.pants.subsystems.codegen import CodegenSubsystem
from kernelwright.pants.util_rules.actions import Action
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from kernelwright.pants.util_rules.toolchains import Toolchains
from kernelwright.pants.util_rules.trees import SOURCE_TREES, Tree, TreeRequest
from pants.engine.fs import Digest
from pants.engine.rules import Get, MultiGet, collect_rules, rule
from pants.util.logging import LogLevel

FOLDER = "dist/compile_commands"
"""Where generated files and headers of toolchains are written, below the root of the workspace."""

# What a compiler driver reads besides sources: an editor runs no compiler, so these parts of the trees are enough.
_HEADERS = {
    "zig": ("ziglang/lib/libcxx/include/**", "ziglang/lib/libc/include/**"),
    "cuda": ("nvidia/cu13/**/include/**", "nvidia/cu13/include/**", "nvidia/cu13/nvvm/libdevice/**"),
}
_LIBC = "__zig/ziglang/lib/libc/include"
# zig finds these by itself. libc comes after the editor's own headers of the compiler, as in every clang.
_ZIG_HOST = (
    *("--target=x86_64-linux-gnu", "-nostdlibinc", "-D__GLIBC_MINOR__=28"),
    *(f"-idirafter{_LIBC}/{part}" for part in ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")),
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
class CompileCommandsRequest:
    """Kernels as JSON texts ``{"arch", "spec", "origin"}``; ``root`` is the absolute path of the workspace."""

    kernels: tuple[str, ...]
    root: str


@dataclass(frozen=True)
class CompileCommands:
    """``compile_commands.json``, and below :data:`FOLDER` what its commands read."""

    digest: Digest
    count: int


def entries(actions: Iterable[Action], root: str, include: Optional[str]) -> list[dict[str, Any]]:
    """One entry for each C or C++ source of a plan; ``include`` is the workspace's folder of our headers, if any."""
    directory = f"{root}/{FOLDER}"
    paths = {f"__{tree}/include/": f"__{tree}/include/" for tree in SOURCE_TREES}
    if include:
        paths = {mount: f"{root}/{include.rstrip('/')}/" for mount in paths}
    found: dict[str, dict[str, Any]] = {}
    for action in actions:
        source = _source(action.argv)
        if source is None:
            continue
        argv = [_in_workspace(word, paths) for word in _for_clang(action.argv)]
        file = _in_workspace(source, paths)
        found.setdefault(file, {"directory": directory, "file": file, "arguments": argv})
    return [found[file] for file in sorted(found)]


def _source(argv: tuple[str, ...]) -> Optional[str]:
    """The C or C++ file that a command compiles; None for links, assembly and everything else."""
    if "-o" not in argv or not {"-c", "-S"}.intersection(argv):
        return None
    source = argv[argv.index("-o") - 1]
    return source if source.endswith((".c", ".cpp", ".hpp", ".cu")) else None


def _for_clang(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command for a clang that does not come with zig's driver."""
    if not argv[0].endswith("ziglang/zig"):
        return argv
    if argv[1] == "clang":
        return ("clang++", *argv[2:])
    driver = {"cc": "clang", "c++": "clang++"}[argv[1]]
    rest = [flag for word in argv[4:] for flag in _cpu_flags(word)]
    return (driver, *(_ZIG_CXX if driver == "clang++" else ()), *_ZIG_HOST, *rest)


def _cpu_flags(word: str) -> tuple[str, ...]:
    """zig writes ``-mcpu=x86_64_v4+avx512bf16``, clang ``-march=x86-64-v4 -mavx512bf16``."""
    if not word.startswith("-mcpu="):
        return (word,)
    level, *features = word[len("-mcpu=") :].split("+")
    return (f"-march={level.replace('_', '-')}", *(f"-m{feature}" for feature in features))


def _in_workspace(word: str, paths: Mapping[str, str]) -> str:
    for mount, path in paths.items():
        if mount in word:
            return word.replace(mount, path)
        if word.endswith(mount.rstrip("/")):
            return word.replace(mount.rstrip("/"), path.rstrip("/"))
    return word


@rule(desc="Describe compiles to editors", level=LogLevel.DEBUG)
async def compile_commands(
    request: CompileCommandsRequest, toolchains: Toolchains, codegen: CodegenSubsystem
) -> CompileCommands:
    body = {
        "stage": "plan",
        "name": "editor",
        "kernels": [json.loads(kernel) for kernel in request.kernels],
        "toolchains": toolchains.to_json(),
    }
    text = json.dumps(body, sort_keys=True)
    response = await Get(CodegenResponse, CodegenRequest("plan", text, "Plan for editors", "the kernels goal"))
    libraries = response.parse()["libraries"]
    actions = [Action.parse(action) for library in libraries for action in library["actions"]]
    described = entries(actions, request.root, codegen.include)
    files = [(f"{FOLDER}/{file['path']}", file["text"].encode()) for library in libraries for file in library["files"]]
    files.append(("compile_commands.json", (json.dumps(described, indent=1) + "\n").encode()))
    parts = [await digests.create(files)]
    names = sorted({name for action in actions if _source(action.argv) for name in action.trees})
    trees = await MultiGet(Get(Tree, TreeRequest(name)) for name in names)
    for tree in trees:
        if tree.name in SOURCE_TREES and codegen.include:
            continue
        headers = await digests.subset(tree.digest, _HEADERS.get(tree.name, ("**",)))
        parts.append(await digests.add_prefix(headers, f"{FOLDER}/{tree.mount}"))
    return CompileCommands(await digests.merge(parts), len(described))


def rules() -> list[object]:
    return [*collect_rules()]

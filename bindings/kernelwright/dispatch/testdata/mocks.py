"""Arrays of a foreign library; mock kernel libraries and, if it is not installed, the dispatcher, compiled once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch.testdata.kept import digest_of, folder_for, own_folder

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
NATIVE = ROOT / "dispatcher_cpp"


@cache
def compilers() -> tuple[list[str], list[str]]:
    """Compiler commands for C and C++; the test is skipped if there are none.

    With KERNELWRIGHT_SANITIZE=address they are gcc with AddressSanitizer and UndefinedBehaviorSanitizer, whose runtime
    the program must have loaded: ``tests/sanitizers/bindings``.
    """
    if os.environ.get("KERNELWRIGHT_SANITIZE") == "address":
        flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
        return ["gcc", *flags], ["g++", *flags]
    trees = os.environ.get("KERNELWRIGHT_TREES")
    if trees:
        zig = Path(json.loads(Path(trees).read_text())["zig"]) / "ziglang" / "zig"
        target = ["-target", "x86_64-linux-gnu.2.28", "-nostdlib", "-lc"]  # zig's run-time takes 9 s to compile
        return [str(zig), "cc", *target], [str(zig), "c++", *target, "-nostdlib++"]
    for c, cxx in (("gcc", "g++"), ("cc", "c++"), ("clang", "clang++")):
        if shutil.which(c) and shutil.which(cxx):
            return [c], [cxx]
    pytest.skip("no C compiler: set KERNELWRIGHT_TREES or put gcc on PATH")


def compile_shared(command: list[str], output: Path) -> Path:
    """Compile to a shared object that may include the headers of the dispatcher and the launchers.

    What the pinned compiler makes is kept under a digest of the command and of every file that it may read.
    """
    if Path(command[0]).name != "zig":
        _compile(command, output)
        return output
    kept = folder_for("shared_objects") / f"{digest_of(command, NATIVE, HERE)}.so"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent) as new:
            _compile(command, Path(new, "made.so"))
            Path(new, "made.so").rename(kept)
    shutil.copy(kept, output)
    return output


def _compile(command: list[str], output: Path) -> None:
    zig = str(folder_for("zig"))
    env = {"ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig, **os.environ}
    include = ["-I", str(NATIVE / "include"), "-I", str(NATIVE)]
    subprocess.run([*command, *include, "-fPIC", "-shared", "-o", str(output)], check=True, env=env, timeout=300)


@cache
def native_library() -> None:
    """Make libkernelwright.so available: the installed one, or one compiled here and named in the environment."""
    if "KERNELWRIGHT_LIBRARY" in os.environ or _packaged("libkernelwright.so"):
        return
    output = _compile_dispatcher(own_folder() / "libkernelwright.so", ["-O2"], "src")
    os.environ["KERNELWRIGHT_LIBRARY"] = str(output)


def compat_library(name: str, operation: str, folder: Path) -> Path:
    """The library ``name`` with the CK Tile dispatcher's functions, packaged or compiled to a folder."""
    sources = ("src", "compat/common", f"compat/{operation}")
    return _packaged(name) or _compile_dispatcher(folder / name, ["-O1", "-fno-threadsafe-statics"], *sources)


def _packaged(name: str) -> Path | None:
    file = Path(str(resources.files("kernelwright.dispatch").joinpath(name)))
    return file if file.is_file() and "KERNELWRIGHT_SANITIZE" not in os.environ else None


def _compile_dispatcher(output: Path, flags: list[str], *folders: str) -> Path:
    """Compile folders of ``dispatcher_cpp`` to a shared library."""
    flags = ["-std=c++17", *flags, "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti"]
    sources = [str(path) for folder in folders for path in sorted((NATIVE / folder).rglob("*.cpp"))]
    return compile_shared([*compilers()[1], *flags, *sources, "-ldl", "-lpthread"], output)


@cache
def _mock(macros: tuple[str, ...]) -> Path:
    name = hashlib.sha256("".join(macros).encode()).hexdigest()[:12]
    defines = [f"-D{macro}" for macro in macros]
    flags = ["-std=c11", "-O2", "-fvisibility=hidden"]
    return compile_shared(
        [*compilers()[0], *flags, *defines, str(HERE / "mock_library.c")], own_folder() / f"{name}.so"
    )


KERNELS = {
    "0": "gemm_fp32_rcr_128x128x64",
    "1": "gemm_fp32_rcr_32x32x32",
    "2": "gemm_fp32_rcr_64x64x64_whole",
    "3": "gemm_fp32_rrr_32x32x32",
    "4": "gemm_fp32_ccr_32x32x32",
    "5": "gemm_fp32_crr_32x32x32",
    "6": "gemm_int8_rcr_fails",
    "7": "gemm_fp16_rrr_nothing",
    "8": "a_gemm_fp32_rcr_exotic",
}
# Instead of those above, with the macro MOCK_VARIANTS.
VARIANTS = {
    "9": "gemm_fp32_rrr_plain",
    "a": "gemm_fp32_rrr_batched",
    "b": "gemm_fp32_rrr_multid_Add_Relu_d1",
    "c": "gemm_fp32_rrr_multid_Multiply_d2",
    "d": "gemm_fp32_rrr_grouped",
    "e": "gemm_fp32_rcr_preshuffle",
    "f": "gemm_fp32_rrr_splitk",
}


def _identity(seed: str, digit: str) -> str:
    match = re.search(r'DIGITS_62 "([0-9a-f]{62})"', (HERE / "mock_library.c").read_text())
    assert match is not None
    return seed + digit + match[1]


def write_library(
    folder: Path, *macros: str, arch: str = "x86_64_v3", backend: str = "cpu", name: str = "mock", seed: str = "0"
) -> Path:
    """A mock library with its manifest in ``folder``; macros of mock_library.c state its faults."""
    fixed = (f'MOCK_ARCH="{arch}"', f'MOCK_NAME="{name}"', f'MOCK_SEED="{seed}"')
    kind = {"ck_tile": "HIP", "cutlass": "CUDA", "cpu": "CPU"}[backend]
    source = _mock((*fixed, f"MOCK_BACKEND=KW_BACKEND_{kind}", *macros))
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"lib{name}.so"
    shutil.copy(source, library)
    kernels = VARIANTS if "MOCK_VARIANTS" in macros else KERNELS
    named = {_identity(seed, digit): kernel for digit, kernel in kernels.items()}
    exotic = {_identity(seed, "8"): "made_up_feature"}
    specs = {_identity(seed, digit): {"op": "gemm", "digit": digit} for digit in kernels}
    write_manifest(library, arch, backend, named, exotic, specs)
    return folder


def write_manifest(
    library: Path, arch: str, backend: str, kernels: dict[str, str], features: dict[str, str] | None = None,
    specs: dict[str, dict[str, str]] | None = None,
) -> None:  # fmt: skip
    """Write a manifest beside a library; ``kernels`` are names by identity."""
    manifest = {
        "schema_version": 1,
        "name": library.stem.removeprefix("lib"),
        "arch": arch,
        "backend": backend,
        "abi_version": 3,
        "library": library.name,
        "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
        "toolchains": {"host": "mock"},
        "kernels": [
            {
                "name": name,
                "identity": identity,
                "arch": arch,
                "spec": (specs or {}).get(identity, {}),
                "features": (features or {}).get(identity, ""),
                "object_sha256": "0" * 64,
                "resources": None,
            }
            for identity, name in kernels.items()
        ],
    }
    (library.parent / "manifest.json").write_text(json.dumps(manifest))


def edit_manifest(folder: Path, **changes: object) -> Path:
    """Replace top-level keys of a manifest; the value ``...`` removes the key."""
    path = folder / "manifest.json"
    raw = json.loads(path.read_text())
    for key, value in changes.items():
        raw.pop(key, None)
        if value is not ...:
            raw[key] = value
    path.write_text(json.dumps(raw))
    return folder


class Foreign:
    """Offers only DLPack, as a foreign array library would."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **_: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


ATTENTION = {
    "1": "fmha_fwd",
    "2": "fmha_fwd_splitkv",
    "3": "fmha_fwd_pagedkv",
    "4": "fmha_batch_prefill",
    "5": "fmha_combine",
    "6": "fmha_append",
    "7": "fmha_dot",
    "8": "fmha_gradients",
    "9": "fmha_convert",
}


@cache
def attention_library(arch: str = "x86_64_v3", backend: str = "cpu") -> Path:
    """A library with a naive fp32 kernel of each attention family, and its manifest. It runs on any device."""
    folder = own_folder() / f"attention_{arch}"
    folder.mkdir()
    kind = {"ck_tile": "HIP", "cutlass": "CUDA", "cpu": "CPU"}[backend]
    flags = ["-std=c11", "-O2", "-fvisibility=hidden", f'-DMOCK_ARCH="{arch}"', f"-DMOCK_BACKEND=KW_BACKEND_{kind}"]
    command = [*compilers()[0], *flags, str(HERE / "mock_attention.c"), "-lm"]
    library = compile_shared(command, folder / "libattention.so")
    match = re.search(r'DIGITS_62 "([0-9a-f]{62})"', (HERE / "mock_attention.c").read_text())
    assert match is not None
    write_manifest(library, arch, backend, {f"a{digit}{match[1]}": name for digit, name in ATTENTION.items()})
    return folder

"""The shipped libraries of CPU kernels of attention: what Pants packages, else built once by the local executor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import as_file, files

import pytest

from compiling import executor
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import ArchMismatchError, Dispatcher, KernelLibrary
from kernelwright.dispatch.testdata import mocks

# A level's own dtypes: fp32 on both, fp16 with AVX2, bf16 with dot products; on request everything on both.
DTYPES = {"x86_64_v3": ("fp32", "fp16"), "x86_64_v4": ("fp32", "bf16")}
# 8-bit operands: every family on one level; conversion with AVX2 on the other.
EIGHT_BITS = {"x86_64_v3": ("fp8fp32",), "x86_64_v4": ("fp8", "fp8fp16", "fp8bf16", "fp8fp32")}
EVERY = bool(os.environ.get("KERNELWRIGHT_EVERY"))
CASES = [
    (arch, dtype)
    for arch, some in DTYPES.items()
    for dtype in (("fp32", "fp16", "bf16") if EVERY else some)
]  # fmt: skip


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelLibrary]:
    """By architecture; those that this machine cannot load are here too."""
    mocks.native_library()
    packaged = files("attention") / "cpu_attention"
    if packaged.is_dir():
        with as_file(packaged) as folder:
            return {arch: KernelLibrary.load(folder / arch) for arch in DTYPES}
    return built(tmp_path_factory)


def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelLibrary]:
    """Libraries of the kernels of :data:`CASES`: about 50 compiles of two seconds each."""
    builder = executor(jobs=os.cpu_count() or 1)
    out, known, loaded = tmp_path_factory.mktemp("attention"), load_archs(), {}
    for arch in DTYPES:
        dtypes = (*(dtype for name, dtype in CASES if name == arch), *EIGHT_BITS[arch])
        selections = select("set", "attention:essential", [arch], known, f"c.dtype in {dtypes}")
        (manifest,) = build_libraries(f"attention_{arch}", selections, DEFAULT_TOOLCHAINS, builder, out / arch)
        loaded[arch] = KernelLibrary.load(manifest.parent)
    return loaded


@pytest.fixture(scope="session", params=DTYPES)
def dispatcher(request: pytest.FixtureRequest, libraries: dict[str, KernelLibrary]) -> Iterator[Dispatcher]:
    """A dispatcher of one architecture's kernels."""
    yield from made(libraries, request.param)


@pytest.fixture(scope="session", params=CASES, ids="-".join)
def typed(request: pytest.FixtureRequest, libraries: dict[str, KernelLibrary]) -> Iterator[tuple[Dispatcher, str]]:
    """The same with each dtype that it was built for."""
    arch, dtype = request.param
    for one in made(libraries, arch):
        yield one, dtype


def made(libraries: dict[str, KernelLibrary], arch: str) -> Iterator[Dispatcher]:
    """A dispatcher, whose threads are again all afterwards; skips on processors without the level."""
    try:
        one = Dispatcher(libraries[arch])
    except ArchMismatchError as error:
        pytest.skip(str(error))
    yield one
    one.set_num_threads(0)

"""The shipped GEMM libraries of all architectures load here, say what they are, and refuse the wrong device."""

from __future__ import annotations

import hashlib
import json
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest

from kernelwright.dispatch import (
    ArchMismatchError,
    DigestMismatchError,
    Dispatcher,
    GemmProblem,
    KernelLibrary,
    KernelwrightError,
    LibraryLoadError,
)
from kernelwright.dispatch.loading.installed import PACKAGE, advice

AMD = ("gfx942", "gfx1201", "gfx90a", "gfx950", "gfx1100")  # in the default tier: one of CDNA, one of RDNA
ALL = ("x86_64_v3", "x86_64_v4", *AMD, "sm_90a")


def folder(arch: str) -> Path:
    with as_file(files("gemm") / f"{arch}_gemm" / arch) as path:
        return path


def test_advice_names_every_shipped_wheel() -> None:
    for arch in ALL:
        assert advice(PACKAGE, "gemm", [arch]) == f"pip install kernelwright-kernels-gemm-{arch}".replace("_", "-")


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("arch", ALL)
def test_every_library_loads_and_describes_itself(arch: str) -> None:
    library = KernelLibrary.load(folder(arch))
    assert library.arch == arch
    assert len(library.kernels) >= 3
    for kernel in library.kernels:
        assert kernel.arch == arch
        assert len(kernel.identity) == 64


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("arch", AMD)
def test_amd_manifests_count_registers_and_matrix_instructions(arch: str) -> None:
    for kernel in KernelLibrary.load(folder(arch)).manifest.kernels:
        resources = kernel.resources
        assert resources is not None
        assert resources["matrix_instructions"] > 0
        assert resources["vgpr"] > 0 and resources["sgpr"] > 0 and resources["lds_bytes"] > 0
        assert resources["scratch_bytes"] == resources["vgpr_spills"] == resources["sgpr_spills"] == 0
        assert resources["wave_size"] == (32 if arch.startswith("gfx1") else 64)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("arch", [*AMD, "sm_90a"])
def test_a_gpu_library_is_refused_by_a_cpu_dispatcher(arch: str) -> None:
    with pytest.raises(ArchMismatchError, match=arch):
        Dispatcher([KernelLibrary.load(folder(arch))], device="cpu")


def damaged(tmp_path: Path, arch: str) -> tuple[Path, Path]:
    copy = tmp_path / arch
    shutil.copytree(folder(arch), copy)
    return copy, copy / "libgemm.so"


def test_a_truncated_library_is_refused(tmp_path: Path) -> None:
    copy, library = damaged(tmp_path, "gfx942")
    library.write_bytes(library.read_bytes()[:5000])
    with pytest.raises(DigestMismatchError, match=r"libgemm\.so"):
        KernelLibrary.load(copy)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def truncated_and_forged(tmp_path: Path) -> Path:
    """A copy whose library is cut, and whose manifest says that this is how it must be."""
    copy, library = damaged(tmp_path, "gfx942")
    library.write_bytes(library.read_bytes()[:5000])
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["sha256"] = sha256(library)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def test_a_truncated_library_with_a_forged_manifest_is_refused_by_its_statement(tmp_path: Path) -> None:
    copy = truncated_and_forged(tmp_path)
    with pytest.raises(DigestMismatchError, match=r"provenance\.json does not fit libgemm\.so, manifest\.json"):
        KernelLibrary.load(copy)


def test_a_truncated_library_with_forged_digests_everywhere_is_not_mapped(tmp_path: Path) -> None:
    copy = truncated_and_forged(tmp_path)
    statement = json.loads((copy / "provenance.json").read_text())
    for subject in statement["subject"]:
        subject["digest"]["sha256"] = sha256(copy / subject["name"])
    (copy / "provenance.json").write_text(json.dumps(statement))
    with pytest.raises(LibraryLoadError):
        KernelLibrary.load(copy)


def test_a_library_under_another_manifest_is_refused(tmp_path: Path) -> None:
    copy, _ = damaged(tmp_path, "gfx942")
    shutil.copy(folder("gfx1201") / "libgemm.so", copy / "libgemm.so")
    with pytest.raises(KernelwrightError):
        KernelLibrary.load(copy)


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize(("m", "n", "k"), [(33, 17, 65), (0, 5, 3), (5, 0, 3), (4, 6, 0), (128, 256, 512)])
def test_cpu_kernels_compute(dtype: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m + n + k)
    kind = {"fp32": np.float32, "fp16": np.float16}[dtype]
    a, b = rng.integers(-3, 4, (m, k)).astype(kind), rng.integers(-3, 4, (k, n)).astype(kind)
    out = np.full((m, n), np.nan, kind)
    Dispatcher([KernelLibrary.load_for("cpu", files("gemm") / "cpu_gemm")]).gemm(a, b, out=out)
    # Small integers are exact in both types up to 2048, far above the largest sum.
    assert np.array_equal(out.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_selection_explains_itself() -> None:
    dispatcher = Dispatcher([KernelLibrary.load_for("cpu", files("gemm") / "cpu_gemm")])
    problem = GemmProblem(64, 64, 64, dtype="fp32", layout="rcr")
    chosen = dispatcher.select(problem)
    explanation = dispatcher.explain(problem)
    assert chosen.kernel.short in str(explanation) and chosen.kernel.name == next(iter(explanation)).name
    assert len(list(explanation)) == len(KernelLibrary.load_for("cpu", files("gemm") / "cpu_gemm").kernels)

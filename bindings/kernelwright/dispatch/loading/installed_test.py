from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.dispatch import Device, KernelLibrary, LibraryNotFoundError
from kernelwright.dispatch.loading.installed import PACKAGE, advice, folders, manifests
from kernelwright.dispatch.operation_methods import OPERATIONS
from kernelwright.dispatch.testdata.mocks import edit_manifest, write_library


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path with what two wheels would put there: no ``__init__.py`` above the architectures."""
    for arch in ("x86_64_v3", "gfx950"):
        folder = write_library(tmp_path / "site/mock_kernels/gemm" / arch)
        (folder / "__init__.py").write_text("")
        edit_manifest(folder, device=f"the makers of {arch}")
    manifest = tmp_path / "site/mock_kernels/gemm/gfx950/manifest.json"
    manifest.write_text(manifest.read_text().replace("x86_64_v3", "gfx950").replace('"cpu"', '"ck_tile"'))
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


def test_the_wheel_for_the_device_is_loaded(site: Path) -> None:
    library = KernelLibrary.load_installed(Device("cpu", arch="x86_64_v3"), "gemm", "mock_kernels")
    assert library.path.parent == site / "mock_kernels/gemm/x86_64_v3"
    assert library.manifest.target == "x86_64_v3 (the makers of x86_64_v3)"


def test_the_wrong_wheels_are_named_with_what_they_are_for(site: Path) -> None:
    with pytest.raises(LibraryNotFoundError) as raised:
        KernelLibrary.load_installed(Device("hip:0", arch="gfx942"), "gemm", "mock_kernels")
    text = str(raised.value)
    assert "hip:0 (gfx942)" in text and "install the wheel that your project builds for it" in text
    assert "gfx950 (the makers of gfx950), mock for x86_64_v3 (the makers of x86_64_v3)" in text


@pytest.mark.parametrize("package", ["no_such_package", "mock_kernels"])
def test_no_wheel_is_said_so(site: Path, package: str) -> None:
    with pytest.raises(LibraryNotFoundError, match="installed are kernels for: nothing; install the wheel"):
        KernelLibrary.load_installed("sim:gfx942", "attention", package)


def test_a_package_may_stand_in_several_folders(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_library(tmp_path / "more/mock_kernels/gemm/x86_64_v4")
    monkeypatch.syspath_prepend(tmp_path / "more")
    assert folders("mock_kernels") == [tmp_path / "more/mock_kernels", site / "mock_kernels"]
    assert [path.parent.name for path in manifests("mock_kernels")] == ["x86_64_v4", "gfx950", "x86_64_v3"]


def test_every_operation_has_a_wheel() -> None:
    for name in OPERATIONS:
        assert advice(PACKAGE, name, ["x86_64_v3"]) == f"pip install kernelwright-kernels-{name}-x86-64-v3"


def test_only_packages_that_exist_are_named() -> None:
    assert advice(PACKAGE, "gemm", ["gfx942"]) == "pip install kernelwright-kernels-gemm-gfx942"
    assert advice(PACKAGE, "attention", ["sm_90a"]) == "pip install kernelwright-kernels-attention-sm-90a"
    assert advice(PACKAGE, "norm", ["x86_64_v3"]) == "pip install kernelwright-kernels-norm-x86-64-v3"
    assert advice(PACKAGE, "norm", ["gfx942"]) == "pip install kernelwright-kernels-norm-gfx942"
    assert advice(PACKAGE, "norm", ["sm_90a"]) == "pip install kernelwright-kernels-norm-sm-90a"
    assert "gfx950, sm_90a" in advice(PACKAGE, "convolution", ["gfx1100"])  # which has no such kernels
    assert advice(PACKAGE, "gemm", ["x86_64_v9", "x86_64_v4"]) == "pip install kernelwright-kernels-gemm-x86-64-v4"
    for package, name, archs in (
        (PACKAGE, "gem", ["gfx942"]),
        ("mine", "gemm", ["gfx942"]),
        (PACKAGE, "gemm", ["gfx900"]),
    ):
        assert "pip install" not in advice(package, name, archs)
    assert advice(PACKAGE, "gem", ["gfx942"]).startswith("did you mean 'gemm'? Otherwise install the wheel")
    with pytest.raises(LibraryNotFoundError) as raised:
        KernelLibrary.load_installed("cpu", "gem")
    assert "pip install" not in str(raised.value) and "did you mean 'gemm'?" in str(raised.value)

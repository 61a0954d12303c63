from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from kernelwright.dispatch import (
    AbiMismatchError,
    Device,
    DigestMismatchError,
    KernelLibrary,
    KernelwrightError,
    LibraryLoadError,
    LibraryNotFoundError,
    ManifestError,
)
from kernelwright.dispatch.testdata.mocks import KERNELS, edit_manifest, write_library


def test_loads_folder_manifest_or_library(tmp_path: Path) -> None:
    folder = write_library(tmp_path / "x86_64_v3")
    for path in (folder, folder / "manifest.json", folder / "libmock.so", str(folder)):
        library = KernelLibrary.load(path)
        assert (library.name, library.arch, library.kind) == ("mock", "x86_64_v3", "cpu")
        assert [kernel.name for kernel in library.kernels] == list(KERNELS.values())
    assert str(library) == "mock for x86_64_v3: 9 kernels"
    assert library.manifest.toolchains == {"host": "mock"}
    assert str(library.kernels[0]) == "gemm_fp32_rcr_128x128x64"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"schema_version": 2}, ManifestError, ["schema_version is 2", "allowed: 1"]),
        ({"schema_version": True}, ManifestError, ["schema_version is True"]),
        ({"abi_version": 7}, AbiMismatchError, ["abi_version is 7", "allowed: 3"]),
        ({"arch": ...}, ManifestError, ["arch is missing"]),
        ({"backend": "opencl"}, ManifestError, ["'opencl'", "ck_tile"]),
        ({"backend": "cutlass"}, ManifestError, ["backend is cutlass", "runs on cpu"]),
        ({"library": "../libmock.so"}, ManifestError, ["'../libmock.so'", "beside"]),
        ({"library": "libother.so"}, LibraryNotFoundError, ["libother.so"]),
        ({"sha256": "zz"}, ManifestError, ["sha256 is 'zz'", "64 hex"]),
        ({"sha256": "0" * 64}, DigestMismatchError, ["0000", "again"]),
        ({"kernels": []}, ManifestError, ["kernels is empty"]),
        ({"kernels": [3]}, ManifestError, ["kernels[0]", "JSON int"]),
        ({"kernels": {}}, ManifestError, ["kernels is {}", "list"]),
    ],
)
def test_wrong_manifests_are_refused(
    tmp_path: Path, changes: dict[str, object], error: type[KernelwrightError], words: list[str]
) -> None:
    folder = edit_manifest(write_library(tmp_path), **changes)
    with pytest.raises(error) as raised:
        KernelLibrary.load(folder)
    for word in words:
        assert word in str(raised.value)


def test_wrong_kernels_in_manifest_are_refused(tmp_path: Path) -> None:
    folder = write_library(tmp_path)
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    edit_manifest(folder, kernels=kernels[1:])
    with pytest.raises(ManifestError, match=r"only in the library: gemm_fp32_rcr_128x128x64"):
        KernelLibrary.load(folder)
    edit_manifest(folder, kernels=[*kernels[1:], {**kernels[0], "name": "renamed"}])
    with pytest.raises(ManifestError, match=r"only in the manifest: renamed"):
        KernelLibrary.load(folder)
    edit_manifest(folder, kernels=[*kernels[1:], {**kernels[0], "arch": "gfx942"}])
    with pytest.raises(ManifestError, match=r"kernels\[8\]: arch is 'gfx942'"):
        KernelLibrary.load(folder)
    edit_manifest(folder, kernels=[*kernels, kernels[0]])
    with pytest.raises(ManifestError, match="not the library's"):
        KernelLibrary.load(folder)
    edit_manifest(folder, kernels=[{**kernel, "arch": "x86_64_v4"} for kernel in kernels], arch="x86_64_v4")
    with pytest.raises(ManifestError, match=r"arch is x86_64_v4, the library's is x86_64_v3"):
        KernelLibrary.load(folder)


def test_missing_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(LibraryNotFoundError, match="not there"):
        KernelLibrary.load(tmp_path / "nowhere")
    with pytest.raises(LibraryNotFoundError, match=r"no manifest\.json"):
        KernelLibrary.load(tmp_path)
    lonely = tmp_path / "liblonely.so"
    lonely.write_bytes(b"")
    with pytest.raises(ManifestError, match="not there"):
        KernelLibrary.load(lonely)
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ManifestError, match="cannot be read as JSON"):
        KernelLibrary.load(tmp_path)
    folder = write_library(tmp_path / "a")
    with pytest.raises(ManifestError, match=r"describes libmock\.so"):
        KernelLibrary.load(shutil.copy(folder / "libmock.so", folder / "libother.so"))
    library = folder / "libmock.so"
    library.write_bytes(library.read_bytes()[:9000])
    with pytest.raises(DigestMismatchError):
        KernelLibrary.load(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ManifestError, match="JSON"):
        KernelLibrary.load(folder)
    (folder / "manifest.json").write_text("[]")
    with pytest.raises(ManifestError, match="JSON list"):
        KernelLibrary.load(folder)


@pytest.mark.parametrize(
    ("macro", "error", "word"),
    [
        ("MOCK_NO_SYMBOL", LibraryLoadError, "kw_library_get"),
        ("MOCK_NULL", LibraryLoadError, "returned null"),
        ("MOCK_ABI=99", AbiMismatchError, "ABI version 99"),
    ],
)
def test_wrong_libraries_are_refused(tmp_path: Path, macro: str, error: type[KernelwrightError], word: str) -> None:
    with pytest.raises(error, match=word):
        KernelLibrary.load(write_library(tmp_path, macro))


def test_not_a_library_is_refused_even_with_a_matching_digest(tmp_path: Path) -> None:
    folder = write_library(tmp_path)
    (folder / "libmock.so").write_bytes(b"text")
    edit_manifest(folder, sha256="982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1")
    with pytest.raises(LibraryLoadError, match="cannot be loaded"):
        KernelLibrary.load(folder)


def test_load_for_picks_the_architecture_of_the_device(tmp_path: Path) -> None:
    write_library(tmp_path / "gemm" / "x86_64_v3")
    write_library(tmp_path / "gemm" / "x86_64_v4", arch="x86_64_v4", seed="4")
    assert KernelLibrary.load_for(Device("cpu", arch="x86_64_v4"), tmp_path).arch == "x86_64_v4"
    assert KernelLibrary.load_for(Device("cpu", arch="x86_64_v3"), str(tmp_path)).arch == "x86_64_v3"
    assert KernelLibrary.load_for("cpu", tmp_path).arch in Device("cpu").archs
    with pytest.raises(LibraryNotFoundError, match=r"gfx942.*mock for x86_64_v3, mock for x86_64_v4"):
        KernelLibrary.load_for(Device("hip:0", arch="gfx942"), tmp_path)
    with pytest.raises(LibraryNotFoundError, match="named other"):
        KernelLibrary.load_for("cpu", tmp_path, name="other")
    with pytest.raises(LibraryNotFoundError, match="not a folder"):
        KernelLibrary.load_for("cpu", tmp_path / "nowhere")
    write_library(tmp_path / "second" / "x86_64_v3", name="second", seed="5")
    with pytest.raises(LibraryNotFoundError, match="several libraries"):
        KernelLibrary.load_for(Device("cpu", arch="x86_64_v3"), tmp_path)
    assert KernelLibrary.load_for(Device("cpu", arch="x86_64_v3"), tmp_path, name="second").name == "second"


def test_libraries_of_another_abi_version_are_in_the_way_of_nothing_else(tmp_path: Path) -> None:
    device = Device("cpu", arch="x86_64_v3")
    write_library(tmp_path / "gemm" / "x86_64_v3")
    edit_manifest(write_library(tmp_path / "gpu" / "gfx942", arch="gfx942", backend="ck_tile", seed="6"), abi_version=1)
    edit_manifest(write_library(tmp_path / "old" / "x86_64_v3", name="old", seed="7"), abi_version=1)
    assert KernelLibrary.load_for(device, tmp_path, name="mock").arch == "x86_64_v3"
    for name in ("old", None):
        with pytest.raises(AbiMismatchError, match=r"old/x86_64_v3/manifest.json: abi_version is 1"):
            KernelLibrary.load_for(device, tmp_path, name=name)


def test_resources_in_archives_are_unpacked(tmp_path: Path) -> None:
    folder = write_library(tmp_path / "x86_64_v3")
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in folder.iterdir():
            packed.write(file, f"cpu_gemm/x86_64_v3/{file.name}")
    root = zipfile.Path(archive, "cpu_gemm/")
    assert KernelLibrary.load_for(Device("cpu", arch="x86_64_v3"), root).arch == "x86_64_v3"

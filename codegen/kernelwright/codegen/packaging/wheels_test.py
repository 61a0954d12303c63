from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.interface import cli
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT, EXIT_MISMATCH
from kernelwright.codegen.packaging.bundle import bundle_files
from kernelwright.codegen.packaging.platform_tag import platform_tag
from kernelwright.codegen.packaging.provenance import sha256
from kernelwright.codegen.packaging.verify import verify
from kernelwright.codegen.packaging.wheels import respond_wheel
from kernelwright.codegen.violations import SpecError

PROJECT = """
[project]
name = "Acme.Kernels"
version = "1.2"
description = "Kernels"
requires-python = ">=3.11"
dependencies = ["kernelwright>=0.2"]
license = "MIT"
license-files = ["LICENSE"]
scripts.acme = "acme.cli:main"
entry-points."acme.plugins".one = "acme:one"
"""
MANIFEST: dict[str, Any] = {
    "name": "gemm",
    "arch": "gfx942",
    "backend": "ck_tile",
    "abi_version": 3,
    "device": "AMD Instinct MI300 series",
    "library": "libgemm.so",
    "toolchains": {"hip": "clang"},
    "kernels": [{"name": "a", "identity": "0" * 64, "spec": {"op": "gemm"}}],
}
PLACE = "acme/gemm/gfx942"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("LICENSE").write_text("ours")
    Path("CK_TILE").write_text("theirs")
    Path("project.toml").write_text(PROJECT)
    Path("libgemm.so").write_bytes(b"library")
    materials = [{"uri": "pkg:pypi/ziglang@1", "digest": {"sha256": sha256(b"zig")}}]
    for name, text in bundle_files({**MANIFEST, "sha256": sha256(b"library")}, materials).items():
        Path(name).write_text(text)
    return tmp_path


def write(**changes: Any) -> Path:
    request = {
        "project": "project.toml",
        "files": {f"{PLACE}/{name}": name for name in ("libgemm.so", "manifest.json", "provenance.json")},
        "licenses": {"CK_TILE": "CK_TILE"},
        "arch": "gfx942",
        "materials": [{"files": {"a.h": sha256(b"a.h")}}],
        "output": "out.whl",
        **changes,
    }
    answer = json.loads(respond_wheel(request))
    assert answer["sha256"] == sha256(Path("out.whl").read_bytes())
    return Path("out.whl").rename(answer["wheel"])


def test_a_kernel_wheel_says_what_it_is_for(root: Path) -> None:
    wheel = write()
    assert wheel.name == "acme_kernels_gfx942-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        info = "acme_kernels_gfx942-1.2.dist-info"
        metadata = BytesParser().parsebytes(archive.read(f"{info}/METADATA"))
        assert metadata["Name"] == "Acme.Kernels-gfx942" and metadata["Requires-Dist"] == "kernelwright>=0.2"
        assert metadata["Summary"] == "Kernels for gfx942 (AMD Instinct MI300 series), ABI version 3"
        assert metadata["License-Expression"] == "MIT" and metadata.get_all("License-File") == ["CK_TILE", "LICENSE"]
        assert archive.read(f"{info}/licenses/CK_TILE") == b"theirs"
        assert archive.read(f"{PLACE}/libgemm.so") == b"library"
        points = archive.read(f"{info}/entry_points.txt").decode()
        assert points == "[acme.plugins]\none = acme:one\n\n[console_scripts]\nacme = acme.cli:main\n"
        record = archive.read(f"{info}/RECORD").decode().splitlines()
        assert [line.partition(",")[0] for line in record] == archive.namelist()
    assert [verdict.problems for verdict in verify(wheel)] == [()]


@pytest.mark.parametrize(
    ("trees", "license"),
    [
        ([], "LicenseRef-Acme"),
        (["zig", "abi", "cpu_gemm"], "LicenseRef-Acme AND MIT"),
        (["cuda", "abi", "cutlass"], "LicenseRef-Acme AND BSD-3-Clause AND LicenseRef-NVIDIA-CUDA-EULA AND MIT"),
        (["cutlass", "flashinfer_edited", "flashinfer"], "LicenseRef-Acme AND BSD-3-Clause AND Apache-2.0"),
    ],
)
def test_a_wheel_has_the_licences_of_the_trees_in_it(root: Path, trees: list[str], license: str) -> None:
    Path("project.toml").write_text(PROJECT.replace('license = "MIT"', 'license = "LicenseRef-Acme"'))
    with zipfile.ZipFile(write(trees=trees)) as archive:
        metadata = BytesParser().parsebytes(archive.read("acme_kernels_gfx942-1.2.dist-info/METADATA"))
    assert metadata["License-Expression"] == license


def test_the_same_request_gives_the_same_bytes(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write().read_bytes()
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("LICENSE", "CK_TILE", "project.toml", "libgemm.so", "manifest.json", "provenance.json"):
        shutil.copyfile(name, other / name)
    os.utime(other / "libgemm.so", (1, 1))
    monkeypatch.chdir(other)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert write().read_bytes() == first
    assert os.environ["SOURCE_DATE_EPOCH"] == "1700000000"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": 1}, "a wheel request has the keys"),
        ({"files": {"../evil": "LICENSE"}}, "inside the wheel"),
        ({"files": {"/evil": "LICENSE"}}, "inside the wheel"),
        *(
            ({key: {name: "LICENSE"}}, "inside the wheel")
            for key in ("files", "licenses")
            for name in ("..", "", ".", "a/../../evil", "a//b", "./a", "..\\evil.pth", "a\\b", "C:evil", "a\nb", "a\0")
        ),
        ({"licenses": {"../../evil.pth": "LICENSE"}}, "inside the wheel"),
        ({"licenses": {"/evil.pth": "LICENSE"}}, "inside the wheel"),
        ({"files": {"acme_kernels_gfx942-1.2.dist-info/METADATA": "LICENSE"}}, "leave it out"),
        ({"files": {"other-1.Dist-Info/entry_points.txt": "LICENSE"}}, "leave it out"),
        ({"files": {"acme-1.data/scripts/evil": "LICENSE"}}, "leave it out"),
        ({"files": {"a": "nowhere"}}, "nowhere cannot be read"),
        ({"trees": ["zig", "zag"]}, "names an unknown tree 'zag'; allowed: zig, "),
        ({"arch": "gfx950"}, "no manifest.json among the files is for it"),
        ({"project": "LICENSE"}, "LICENSE: "),
    ],
)
def test_wrong_requests_are_refused(root: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        write(**changes)
    assert not Path("out.whl").exists()


def test_the_name_of_a_wheel_fits_a_file_system(root: Path) -> None:
    Path("project.toml").write_text(PROJECT.replace("Acme.Kernels", "a" * 300))
    with pytest.raises(SpecError, match=r"the wheel's name has 3\d\d characters; allowed: 255; shorten project.name"):
        write()


def test_a_wheel_that_an_index_would_refuse_is_not_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.codegen.packaging.wheels.MAX_BYTES", 1000)
    with pytest.raises(SpecError, match="bytes; allowed: 1000; split"):
        write()


def test_platform_tags_follow_the_symbols_that_libraries_need(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    source = tmp_path / "a.c"
    source.write_text("#include <math.h>\ndouble f(double x) { return exp(x); }\n")

    def library(*flags: str) -> bytes:
        command = ["gcc", "-shared", "-fPIC", "-fno-builtin", str(source), "-o", str(tmp_path / "a.so"), *flags]
        subprocess.run(command, check=True, timeout=60)
        return (tmp_path / "a.so").read_bytes()

    new = library("-lm")  # exp has had a new version since glibc 2.29
    assert platform_tag({"a.so": new, "b.py": b""}) == "manylinux_2_29_x86_64"
    assert platform_tag({"b.py": b""}) == "any"
    with pytest.raises(SpecError, match=r"a.so needs libstdc\+\+.so.6; allowed"):
        platform_tag({"a.so": library("-lm", "-Wl,--no-as-needed", "-lstdc++")})
    with pytest.raises(SpecError, match="is for EM_AARCH64"):
        platform_tag({"a.so": new[:18] + b"\xb7\x00" + new[20:]})
    with pytest.raises(SpecError, match=r"a\.so is no shared library"):
        platform_tag({"a.so": new[:40]})


def _repacked(wheel: Path, change: Any) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


def _alter(files: dict[str, bytes], ending: str, old: bytes, new: bytes) -> None:
    (name,) = [name for name in files if name.endswith(ending)]
    assert old in files[name]
    files[name] = files[name].replace(old, new)


@pytest.mark.parametrize(
    ("ending", "old", "new"),
    [
        ("libgemm.so", b"library", b"Library"),
        (f"{PLACE}/manifest.json", b'"gemm"', b'"gemn"'),
        (f"{PLACE}/provenance.json", b"ziglang@1", b"ziglang@2"),
        ("dist-info/provenance.json", b'"1.2"', b'"1.3"'),
        ("METADATA", b"gfx942", b"gfx950"),
        ("RECORD", b"libgemm.so,sha256=", b"libgemm.so,sha256=A"),
    ],
)
def test_a_changed_wheel_fails_with_exit_code_3(
    root: Path, capsys: pytest.CaptureFixture[str], ending: str, old: bytes, new: bytes
) -> None:
    wheel = _repacked(write(), lambda files: _alter(files, ending, old, new))
    assert cli.main(["verify", str(wheel)]) == EXIT_MISMATCH == 3
    assert "problem" in capsys.readouterr().out


def test_an_added_file_fails(root: Path) -> None:
    wheel = _repacked(write(), lambda files: files.update({"acme/evil.py": b"x"}))
    (verdict,) = verify(wheel)
    assert any("evil.py" in problem for problem in verdict.problems)


def test_a_library_is_tied_to_manifest_and_statement(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = root / "dist/gfx942"
    for change in (
        lambda: None,
        lambda: (folder / "libgemm.so").write_bytes(b"Library"),
        lambda: _replace(folder / "manifest.json", '"ck_tile"', '"cpu"'),
        lambda: _replace(folder / "provenance.json", "ziglang@1", "ziglang@2"),
        lambda: _replace(folder / "provenance.json", sha256(b"library"), sha256(b"Library")),
        lambda: (folder / "provenance.json").unlink(),
        lambda: (folder / "provenance.json").write_text("[" * 100_000),
        lambda: (folder / "libgemm.so").unlink(),
    ):
        shutil.rmtree(root / "dist", ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("libgemm.so", "manifest.json", "provenance.json"):
            shutil.copyfile(root / name, folder / name)
        untouched = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
        change()
        whole = untouched == sorted((path.name, path.read_bytes()) for path in folder.iterdir())
        assert cli.main(["verify", "dist"]) == (0 if whole else 3)
    assert "libgemm.so is missing" in capsys.readouterr().out


def _replace(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_materials_are_looked_up(root: Path, tmp_path: Path) -> None:
    wheel = write()
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "ziglang-1-py3-none-any.whl").write_bytes(b"zig")
    (shelf / "a.h").write_bytes(b"a.h")
    ours = Path(cli.__file__).parents[4]
    assert [verdict.problems for verdict in verify(wheel, [shelf, ours])] == [()]
    (shelf / "a.h").write_bytes(b"A.h")
    (shelf / "ziglang-1-py3-none-any.whl").unlink()
    (verdict,) = verify(wheel, [shelf, ours])
    assert "another file" in " ".join(verdict.problems) and "pkg:pypi/ziglang@1" in " ".join(verdict.problems)
    assert len(verdict.problems) == 2


def test_nothing_to_verify_is_bad_input(root: Path) -> None:
    (root / "empty").mkdir()
    assert cli.main(["verify", "empty"]) == cli.main(["verify", "nowhere"]) == EXIT_BAD_INPUT

from __future__ import annotations

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from kernelwright.dispatch.loading import installed
from kernelwright.dispatch.testdata.mocks import ROOT, native_library, write_library
from kernelwright.dispatch.tools import command, doctor

SECTIONS = ["interpreter", "packages", "libraries", "devices", "drivers", "torch", "toolchains", "cache", "problems"]


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    native_library()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/pants"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = command.main(["doctor", *arguments])
    return code, capsys.readouterr().out


def test_json_and_text_have_the_same_sections(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "--json")
    document = json.loads(text)
    assert list(document) == [*SECTIONS, "damaged"]  # which repeats those of the problems that end with exit code 3
    assert document["interpreter"]["executable"] == sys.executable
    assert document["libraries"]["dispatcher"]["abi_version"] == 3
    assert document["packages"]["numpy"]
    assert code == (1 if document["problems"] else 0)
    assert [line[:-1] for line in run(capsys)[1].splitlines() if not line.startswith(" ")] == SECTIONS


def test_installed_kernels_are_listed_and_damage_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_library(tmp_path / "site/kernelwright_kernels/mock/x86_64_v3")
    monkeypatch.syspath_prepend(tmp_path / "site")
    (entry,) = json.loads(run(capsys, "--json")[1])["libraries"]["kernels"]
    assert entry == {"manifest": str(folder / "manifest.json"), "name": "mock", "for": "x86_64_v3", "kernels": 9}
    assert "9 kernels for x86_64_v3" in run(capsys)[1]
    with next(folder.glob("*.so")).open("ab") as file:
        file.write(b"x")
    code, text = run(capsys)
    assert code == 3 and "has sha256" in text.partition("problems:")[2]


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of that name, whose import does what a test writes."""
    folder = tmp_path / "fake"
    (folder / "torch").mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(folder))  # of the process that imports it
    monkeypatch.setattr(doctor, "find_spec", lambda name: name)
    return folder / "torch/__init__.py"


def test_roads_of_torch_are_asked_in_a_process(fake_torch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_ROADS", "import torch")
    fake_torch.write_text('print(\'{"linear": "native", "varlen_attn": "python: why"}\')')
    assert doctor.report()["torch"] == {"linear": "native", "varlen_attn": "python: why"}
    assert "torch:\n  linear       native\n  varlen_attn  python: why" in doctor._text(doctor.report())
    fake_torch.write_text("raise ImportError('it is broken')")
    assert doctor.report()["torch"] == "kernelwright.torch was not imported: ImportError: it is broken"
    monkeypatch.setattr(doctor, "_ROADS_S", 0.0)
    assert "was not asked" in doctor._text(doctor.report()).partition("torch:")[2].splitlines()[1]


def test_without_torch_there_are_no_roads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    assert doctor.report()["torch"] is None
    assert "torch:\n  none" in doctor._text(doctor.report())


def test_caches_are_measured(caches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = caches / "named_caches/kernelwright_wheels/0123/ziglang-0.17.0-py3-none-any.whl"
    wheel.mkdir(parents=True)
    (wheel / "zig").write_bytes(b"x" * 10_000)
    document = json.loads(run(capsys, "--json")[1])
    assert document["toolchains"]["unpacked"] == [wheel.name] and document["cache"]["pants_folder"] == str(caches)
    assert document["cache"]["pants_toolchains_bytes"] >= 10_000 and document["cache"]["pants_results_bytes"] == 0
    assert "ziglang 0.17.0" in run(capsys)[1]


@pytest.mark.parametrize("named", ["", "elsewhere"])
@pytest.mark.parametrize("user", ["", "user"])
def test_the_cache_is_that_of_the_jit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str, user: str
) -> None:
    for variable, folder in (("KERNELWRIGHT_CACHE", named), ("XDG_CACHE_HOME", user)):
        monkeypatch.setenv(variable, folder and str(tmp_path / folder))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert doctor.jit_cache().is_relative_to(tmp_path)
    result = doctor.jit_cache() / "libraries/0123"
    result.parent.mkdir(parents=True)
    result.write_bytes(b"x" * 10_000)
    cache = json.loads(run(capsys, "--json")[1])["cache"]
    assert (
        cache["jit_folder"] == str(doctor.jit_cache()) and cache["jit_bytes"] >= 10_000 and cache["jit_free_bytes"] > 0
    )
    assert str(doctor.jit_cache()) in run(capsys)[1].partition("cache:")[2]


def install(site: Path, name: str, version: str, *lines: str, files: tuple[str, ...] = ()) -> None:
    """An installed distribution, as far as its metadata go."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    header = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines]
    (folder / "METADATA").write_text("\n".join(header) + "\n")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_what_the_jit_compiles_with_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, trees = tmp_path / "site", tmp_path / "trees.json"
    pins = ('ziglang==0.17.0; extra == "jit"', 'clang-tidy==22.1.8; extra == "jit-amd"', 'rich>=13; extra == "jit"')
    install(site, "kernelwright", "0.1.0", *(f"Requires-Dist: {pin}" for pin in pins))
    install(site, "ziglang", "0.17.0")
    install(site, "clang-tidy", "21.0.0")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delenv("KERNELWRIGHT_TREES", raising=False)
    toolchains = json.loads(run(capsys, "--json")[1])["toolchains"]
    assert toolchains["installed"] == {"clang-tidy": "21.0.0, but kernelwright.jit needs 22.1.8", "ziglang": "0.17.0"}
    assert toolchains["named"] is None and "ziglang 0.17.0" in run(capsys)[1].partition("toolchains:")[2]
    trees.write_text('{"zig": "/somewhere/zig"}')
    monkeypatch.setenv("KERNELWRIGHT_TREES", str(trees))
    assert json.loads(run(capsys, "--json")[1])["toolchains"]["named"] == {"zig": "/somewhere/zig"}
    assert "zig /somewhere/zig" in run(capsys)[1]
    for text in ("[]", "{"):
        trees.write_text(text)
        assert f"KERNELWRIGHT_TREES is {trees}, which" in run(capsys)[1]


def test_kernel_wheels_are_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    install(site, "mine-gemm", "1.2", files=("kernelwright_kernels/mock/x86_64_v3/manifest.json",))
    install(site, "other", "3.4", files=("other/module.py",))
    monkeypatch.syspath_prepend(site)
    packages = json.loads(run(capsys, "--json")[1])["packages"]
    assert packages["mine-gemm"] == "1.2" and "other" not in packages


def test_a_store_is_verified_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = tmp_path / "store/immutable/files/00" / f"{0:064}"
    large.parent.mkdir(parents=True)
    large.write_bytes(b"not what its name says")
    code, text = run(capsys, "--verify", str(tmp_path / "store"))
    assert code == 3 and f"the local store is damaged: {large}" in text.partition("problems:")[2]
    assert f"files of {tmp_path / 'store'}" in text.partition("problems:")[0]
    code, text = run(capsys, "--verify")
    assert code == 1 and "lmdb_store is no folder" in text
    assert "verified" not in json.loads(run(capsys, "--json")[1])["cache"]


def test_toolchains_are_those_that_our_extras_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert doctor._toolchain_distributions() == {}
    requirements = tomllib.loads((ROOT / "packages/kernelwright.toml").read_text())["project"]["optional-dependencies"]
    stated = [f"{each}; extra == '{extra}'" for extra, needed in requirements.items() for each in needed]
    monkeypatch.setattr(metadata, "requires", lambda name: ["numpy>=1.26", *stated])
    versions = doctor._toolchain_distributions()
    assert {"ziglang", "clang-tidy", "amd-aiter", "nvidia-cutlass", "nvidia-cuda-nvcc"} <= {*versions}
    assert not {"tinygrad", "rich", "numpy", "kernelwright"} & {*versions}
    assert all(
        f"{name}=={version}" in (ROOT / "packages/kernelwright.toml").read_text() for name, version in versions.items()
    )


def test_a_machine_without_a_dispatcher_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_LIBRARY", str(tmp_path / "nowhere.so"))
    monkeypatch.setattr("kernelwright.dispatch.core.native._loaded", None)
    code, text = run(capsys)
    assert code == 1 and "nowhere.so is not the native dispatcher" in text


def test_a_compiler_that_cannot_say_its_version(tmp_path: Path) -> None:
    tool = tmp_path / "g++"
    tool.write_text("#!/bin/sh\nexit 3\n")
    tool.chmod(0o755)
    assert doctor._says(str(tool)) == "exit code 3 and no version"
    assert doctor._says(str(tmp_path / "none")).startswith("cannot be run")


def test_other_commands_name_the_packages_that_they_need(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without_click(name: str) -> None:
        raise ModuleNotFoundError(f"{name} needs click", name="click")

    monkeypatch.setattr("importlib.import_module", without_click)
    assert command.main(["kernels", "--set", "gemm:essential"]) == 2
    assert "needs the package click" in capsys.readouterr().err


def test_nothing_is_installed_here() -> None:
    assert list(installed.manifests("kernelwright_no_kernels")) == []


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--verify", str(tmp_path / "nothere")]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "nothere: no such folder; name a store of Pants" in printed.err

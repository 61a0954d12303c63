"""Wheels as their users meet them: a bare environment with pip, a C++ project with CMake, damage and the wrong GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from downstream.conftest import run, succeed
from e2e.workspace import ROOT

MULTIPLY = """
import numpy as np
from kernelwright.dispatch import Device, Dispatcher, KernelLibrary

device = Device("cpu", arch="x86_64_v3")
library = KernelLibrary.load_installed(device, "gemm")
a, b = np.ones((17, 33), np.float32), np.full((33, 9), 2, np.float32)
print(library, Dispatcher([library], device).gemm(a, b)[16, 8])
"""


def test_names_tags_and_sizes_are_those_of_an_index(wheels: Path) -> None:
    names = sorted(path.name for path in wheels.iterdir())
    assert [re.sub(r"-0\.1\.0-py3-none-", " ", name) for name in names] == [
        "kernelwright manylinux_2_17_x86_64.whl",
        "kernelwright_kernels_gemm_x86_64_v3 manylinux_2_17_x86_64.whl",
        "kernelwright_kernels_gemm_x86_64_v4 manylinux_2_17_x86_64.whl",
        "kernelwright_pants any.whl",
    ]
    assert all(path.stat().st_size <= 100_000_000 for path in wheels.iterdir())


def test_the_wheel_has_every_package_of_the_bindings(wheels: Path) -> None:
    (wheel,) = wheels.glob("kernelwright-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("kernelwright/torch/")}
    torch = ROOT / "bindings/kernelwright/torch"
    sources = (*torch.rglob("*.py"), *torch.rglob("*.pyi"))
    shipped = {
        str(path.relative_to(ROOT / "bindings"))
        for path in sources
        if not path.name.endswith(("_test.py", "conftest.py"))
    }
    assert packed - {"kernelwright/torch/py.typed"} == {name for name in shipped if "/testdata/" not in name}


def test_all_that_is_released_together_has_one_version() -> None:
    kernels = sorted((ROOT / "kernels").glob("*/kernels.toml"))
    projects = [*(ROOT / "packages").glob("*.toml"), *kernels]
    versions = {tomllib.loads(path.read_text())["project"]["version"] for path in projects}
    cmake = (ROOT / "packages/cmake/kernelwright-config-version.cmake").read_text()
    versions.update(re.findall(r'set\(PACKAGE_VERSION "(.*)"\)', cmake))
    for path in (
        *kernels,
        *(f"examples/downstream/{name}" for name in ("pants.toml", "acme/acme.toml")),
    ):
        versions.update(re.findall(r"\bkernelwright[\w-]*==([\w.]+)", (ROOT / path).read_text()))
    assert len(versions) == 1
    # The build of a wheel sees the licence files that its target names, and no others.
    assert not any("license-files" in tomllib.loads(path.read_text())["project"] for path in kernels)


def test_the_wheel_asks_for_what_the_locks_hold(wheels: Path) -> None:
    """Toolchains, which make bytes, in exactly the version that is pinned."""
    (wheel,) = wheels.glob("kernelwright-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read("kernelwright-0.1.0.dist-info/METADATA").decode()
    asked = set(re.findall(r"^Requires-Dist: ([^;\[]+?)(?: ;|;|$)", metadata, re.MULTILINE))
    locks = [ROOT / "3rdparty/python/runtime.txt", *(ROOT / "3rdparty/toolchains").glob("*.txt")]
    held, *toolchains = (re.findall(r"^([\w.-]+==[\w.]+)", lock.read_text(), re.MULTILINE) for lock in locks)
    pinned = {pin for pins in toolchains for pin in pins}
    compilers = {one for one in asked if re.split(r"[^\w.-]", one)[0] in {pin.split("==")[0] for pin in pinned}}
    assert compilers == pinned
    names = {re.split(r"[^\w.-]", one)[0] for one in asked - compilers}
    assert names <= {pin.split("==")[0] for pin in held} and "numpy" in names


def test_pip_installs_kernels_into_a_bare_environment_and_they_run(bare: Path) -> None:
    assert re.match(r"gemm for x86_64_v3: \d+ kernels 66\.0", succeed(bare / "python", "-c", MULTIPLY))
    listed = json.loads(succeed(bare / "python", "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
    assert {"numpy", "kernelwright", "kernelwright-kernels-gemm-x86-64-v3"} == {
        entry["name"].replace("_", "-") for entry in listed
    } - {"pip", "setuptools"}


def test_doctor_needs_nothing_else(bare: Path) -> None:
    report = json.loads(succeed(bare / "kernelwright", "doctor", "--json"))
    assert report["problems"] == []
    (kernels,) = report["libraries"]["kernels"]
    assert kernels["for"].startswith("x86_64_v3 (x86-64 with AVX2")
    refused = run(bare / "kernelwright", "kernels", "--set", "gemm:essential")
    assert refused.returncode == 2 and "pip install 'kernelwright[build]'" in refused.stderr


def test_a_wheel_for_another_device_is_named_as_such(bare: Path) -> None:
    code = MULTIPLY.replace('Device("cpu", arch="x86_64_v3")', 'Device("hip:0", arch="gfx942")')
    refused = run(bare / "python", "-c", code)
    assert "installed are kernels for: gemm for x86_64_v3 (x86-64 with AVX2" in refused.stderr
    assert "pip install kernelwright-kernels-gemm-gfx942" in refused.stderr


def test_installed_files_are_verified_at_load_and_wheels_offline(
    bare: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site,) = (bare.parent / "lib").glob("python*/site-packages")
    library = site / "kernelwright_kernels/gemm/x86_64_v3/libgemm.so"
    whole = library.read_bytes()
    try:
        library.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        refused = run(bare / "python", "-c", MULTIPLY)
    finally:
        library.write_bytes(whole)
    assert refused.returncode != 0 and "DigestMismatchError" in refused.stderr

    verify = (sys.executable, "-m", "kernelwright.codegen", "verify")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(ROOT / name) for name in ("arch", "codegen")))
    lines = succeed(*verify, wheels).splitlines()
    assert len(lines) == 4 and all(": ok, " in line for line in lines)
    for wheel in wheels.glob("*_v3-*"):
        data = bytearray(wheel.read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / wheel.name).write_bytes(data)
    assert run(*verify, tmp_path).returncode == 3


def _compiler() -> dict[str, str]:
    """CMake's environment: the machine's g++, or the compiler that every build of this repository has unpacked."""
    if shutil.which("g++"):
        return dict(os.environ)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pants/named_caches/kernelwright_wheels")
    zig = next(caches.glob("*/ziglang-*.whl/ziglang/zig"))
    return {**os.environ, "CXX": f"{zig} c++"}


def test_a_cmake_project_finds_headers_and_library(bare: Path, tmp_path: Path) -> None:
    tools = Path(sys.executable).parent  # cmake and ninja are pinned with the tools of CI
    config = succeed(bare / "kernelwright", "--cmake-dir").strip()
    source = ROOT / "examples/downstream/cpp"
    configure = (
        tools / "cmake",
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
        "-S",
        source,
        "-B",
        tmp_path,
    )
    environment = _compiler()
    refused = run(*configure, env=environment)
    assert refused.returncode != 0 and "kernelwright_DIR" in refused.stderr
    succeed(*configure, f"-Dkernelwright_DIR={config}", env=environment)
    succeed(tools / "cmake", "--build", tmp_path, env=environment)
    (site,) = (bare.parent / "lib").glob("python*/site-packages")
    said = succeed(tmp_path / "multiply", site / "kernelwright_kernels/gemm/x86_64_v3/libgemm.so")
    assert said.endswith("0 wrong of 7000\n")

"""Every kernel wheel that is shipped: its name, size and licences, and pip into an environment that holds nothing else.

Builds all shipped kernels unless a cache has them: ``PYTHONPATH=tests python -m pytest -m slow tests/downstream``.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

from downstream.conftest import install, packaged, succeed
from e2e.workspace import ROOT

pytestmark = pytest.mark.slow

# By the first letters of the architecture: the texts of those whose code is compiled in, and words that they hold.
LICENSES = {
    "gfx": {"LICENSE.ck_tile.txt": b"Advanced Micro Devices"},
    "sm_": {"LICENSE.cutlass.txt": b"NVIDIA CORPORATION", "LICENSE.cuda.txt": b"CUDA Toolkit"},
    "x86": {},
}
# Loads without a driver; a dispatcher would ask for the device.
LOAD = """
import importlib.resources, sys
from kernelwright.dispatch import KernelLibrary
for name in sys.argv[1:]:
    print(KernelLibrary.load(importlib.resources.files("kernelwright_kernels." + name)))
"""


def shipped() -> list[tuple[str, str]]:
    """Each library with each architecture that its BUILD file names."""
    libraries = []
    for build in sorted((ROOT / "kernels").glob("*/BUILD")):
        named = re.findall(r"^[A-Z]+ = (\[.*\])$", build.read_text(), re.MULTILINE)
        libraries += sorted((build.parent.name, arch) for names in named for arch in json.loads(names))
    return libraries


def distribution(library: str, arch: str) -> str:
    return f"kernelwright-kernels-{library}-{arch.replace('_', '-')}"


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    targets = sorted({f"kernels/{library}:wheels" for library, _ in shipped()})
    return packaged(tmp_path_factory.mktemp("every"), "packages::", *targets)


def _wheel(folder: Path, library: str, arch: str) -> Path:
    (wheel,) = folder.glob(f"kernelwright_kernels_{library}_{arch}-*.whl")
    return wheel


def test_there_is_one_for_each_architecture_small_enough_for_an_index(every: Path) -> None:
    assert len(list(every.iterdir())) == len(shipped()) + 2
    for library, arch in shipped():
        wheel = _wheel(every, library, arch)
        tag = re.fullmatch(
            rf"kernelwright_kernels_{library}_{arch}-[\d.]+-py3-none-manylinux_2_(\d+)_x86_64\.whl", wheel.name
        )
        assert tag and int(tag[1]) <= 28, wheel.name
        assert wheel.stat().st_size <= 100_000_000
        print(wheel.name, wheel.stat().st_size)


def test_licences_of_what_is_compiled_in_are_there(every: Path) -> None:
    for library, arch in shipped():
        with zipfile.ZipFile(_wheel(every, library, arch)) as archive:
            texts = {
                name.split("/licenses/")[1]: archive.read(name) for name in archive.namelist() if "/licenses/" in name
            }
        assert texts.keys() == {"LICENSE", *LICENSES[arch[:3]]}, (library, arch)
        for name, words in LICENSES[arch[:3]].items():
            assert words in texts[name], name


def test_pip_installs_each_alone_and_its_library_loads(every: Path, numpy: Path, tmp_path: Path) -> None:
    for library, arch in shipped():
        folder = tmp_path / library / arch
        folder.mkdir(parents=True)
        programs = install([every, numpy], folder, distribution(library, arch))
        said = succeed(programs / "python", "-c", LOAD, f"{library}.{arch}")
        assert re.match(rf"{library} for {arch}: \d+ kernel", said)


def test_they_stand_side_by_side(every: Path, numpy: Path, tmp_path: Path) -> None:
    programs = install([every, numpy], tmp_path, *(distribution(*each) for each in shipped()))
    names = [f"{library}.{arch}" for library, arch in shipped()]
    said = succeed(programs / "python", "-c", LOAD, *names).splitlines()
    assert [line.split(":")[0] for line in said] == [f"{library} for {arch}" for library, arch in shipped()]
    report = json.loads(succeed(programs / "kernelwright", "doctor", "--json"))
    archs = {arch for _, arch in shipped()}
    assert {entry["for"].split(" ")[0] for entry in report["libraries"]["kernels"]} == archs
    verify = (sys.executable, "-m", "kernelwright.codegen", "verify", str(every))
    lines = succeed(*verify, env={"PYTHONPATH": f"{ROOT}/arch:{ROOT}/codegen"}).splitlines()
    assert len(lines) == len(shipped()) + 2 and all(": ok, " in line for line in lines)

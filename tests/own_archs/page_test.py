"""docs/adding_an_arch.md, followed to the letter in an empty folder: its files, commands and programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compiling import cache_folder

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adding_an_arch.md").read_text()
EXAMPLE = ROOT / "examples/own_archs"
LIMIT_S = 1700
COMMAND = f"""#!/bin/sh
exec {sys.executable} -c 'import sys; from kernelwright.dispatch.tools.command import main; sys.exit(main())' "$@"
"""


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def run(folder: Path, *command: str) -> str:
    """Standard output of a command that a reader of the page runs."""
    trees = [str(Path(entry).resolve()) for entry in sys.path if entry]
    search = f"{folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    settings = {**os.environ, "PATH": search, "PYTHONPATH": ":".join(trees)}
    settings["KERNELWRIGHT_ARCH_PATH"] = str(folder / "archs")
    settings["KERNELWRIGHT_CACHE"] = str(cache_folder())
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the reader starts with: the files of the page, the command, and the toolchains."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "archs").mkdir()
    for text in blocks("json"):
        (folder / "archs" / f"{json.loads(text)['name']}.json").write_text(text)
    (folder / "bin").mkdir()
    (folder / "bin/kernelwright").write_text(COMMAND)
    (folder / "bin/kernelwright").chmod(0o755)
    given = Path(os.environ["KERNELWRIGHT_TREES"])
    listed = {name: str(Path(tree).resolve()) for name, tree in json.loads(given.read_text()).items()}
    (folder / "trees.json").write_text(json.dumps(listed))
    return folder


def test_the_files_are_those_of_the_example(folder: Path) -> None:
    shown = {path.name: path.read_text() for path in (folder / "archs").iterdir()}
    kept = {path.name: path.read_text() for path in (EXAMPLE / "archs").iterdir()}
    assert shown == kept and len(shown) == 2
    assert blocks("toml")[0].split("\n")[1] in (ROOT / "pants.toml").read_text()
    assert [text for text in blocks("python") if text.strip() in (EXAMPLE / "BUILD").read_text()]


def test_the_commands_list_generate_and_build(folder: Path) -> None:
    listing, building = blocks("sh")
    said = run(folder, "bash", "-ec", listing)
    assert "my_rdna ck_tile gfx1200 gemm,norm (simulated): a made-up GPU of the RDNA 4 family" in said
    assert "my_hopper cutlass sm_90a gemm,norm: a made-up GPU of the Hopper family" in said
    assert re.search(r"^my_rdna gemm_fp16_rcr_mem_.*_2x2x1_16x16x16 [0-9a-f]{64}$", said, re.MULTILINE)
    assert re.search(r"^my_hopper gemm_fp16_rcr_tma_.*_1x1x1_16x64x16 [0-9a-f]{64}$", said, re.MULTILINE)
    assert len(list((folder / "headers").rglob("*.hpp"))) == 2
    run(folder, "bash", "-ec", building)
    for arch, target in (("my_rdna", "gfx1200"), ("my_hopper", "sm_90a")):
        manifest = json.loads((folder / "libraries" / arch / "manifest.json").read_text())
        assert manifest["arch"] == arch and manifest["kernels"][0]["resources"]["matrix_instructions"] > 0
        assert target.encode() in (folder / "libraries" / arch / "libgemm.so").read_bytes()


def test_the_programs_plan_and_simulate(folder: Path) -> None:
    programs = [text for text in blocks("python") if "import" in text]
    said = [run(folder, sys.executable, "-c", program) for program in programs]
    assert len(said) == 2 and "fp16 rcr 32x64x32 mem>" in said[0] and " tma persistent>" in said[0]


def test_a_mistake_names_file_and_field(folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    shutil.copytree(folder / "bin", wrong / "bin")
    (wrong / "archs").mkdir()
    text = (folder / "archs/my_rdna.json").read_text().replace('"waves": [[2, 2, 1], [1, 4, 1]]', '"waves": [2]')
    (wrong / "archs/my_rdna.json").write_text(text)
    with pytest.raises(AssertionError, match=r"arch 'my_rdna' is wrong:\s+operations\.gemm\.waves: .*2 is not"):
        run(wrong, "kernelwright", "arch")

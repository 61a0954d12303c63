"""Each example compiles without a warning, runs with the packaged dispatcher and library, and is right."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.dispatch import KernelLibrary

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
KERNELS = os.environ.get("KERNELWRIGHT_KERNELS", str(HERE.parent / "kernels"))
DISPATCHER = os.environ.get("KERNELWRIGHT_LIBRARY", str(ROOT / "bindings/kernelwright/dispatch/libkernelwright.so"))
# Example → arguments, and what its output must have.
EXAMPLES: dict[str, tuple[list[str], str]] = {
    "basic": ([], "0 wrong of 7000"),
    "benchmark": (["2", "32", "64"], "GFLOP/s"),
    "export_json": ([], '"explanation"'),
    "grouped": ([], "4 groups, 0 wrong elements"),
    "heuristics": ([], "first fit with a priority: gemm_"),
    "jit": ([sys.executable, "-m", "kernelwright.codegen"], "multid_Multiply_None_d2: 0 wrong of 600"),
    "many_sizes": ([], "6 plans, 0 wrong elements"),
    "multi_d": ([], "0 wrong of 1200\nno kernel: "),
    "preshuffle": ([], " bytes shuffled, 0 wrong elements"),
    "stress": (["16", "10"], "160 of 160 products, 0 wrong"),
    "torch_tensors": ([], "\nclose to torch's result"),
    "validation": ([], " right, 0 wrong"),
}


def test_every_example_is_run() -> None:
    programs = {path.stem for path in HERE.glob("*.cpp")}
    assert set(EXAMPLES) == programs
    built = (HERE / "CMakeLists.txt").read_text()
    assert all(f" {name}" in built for name in programs)


def torch_flags() -> list[str]:
    """How programs are compiled with torch's wheel, whose headers are C++20."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed: tests/pytorch/run runs this example")
    torch = Path(spec.origin).parent
    headers = ["-isystem", f"{torch}/include", "-isystem", f"{torch}/include/torch/csrc/api/include"]
    return ["-std=c++20", *headers, f"-L{torch}/lib", f"-Wl,-rpath,{torch}/lib", "-ltorch_cpu", "-lc10"]


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        pytest.skip("no C++ compiler: set CXX or put g++ on PATH")
    program = tmp_path / name
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "dispatcher_cpp/include"), "-pthread"]
    links = [DISPATCHER, f"-Wl,-rpath,{Path(DISPATCHER).parent}", *(torch_flags() if name == "torch_tensors" else ())]
    if name == "jit":
        if "KERNELWRIGHT_TREES" not in os.environ:
            pytest.skip("no compilers: KERNELWRIGHT_TREES is not set")
        monkeypatch.setenv("KERNELWRIGHT_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of the command that the program starts
    subprocess.run([compiler, *flags, HERE / f"{name}.cpp", *links, "-o", program], check=True, timeout=300)
    library = KernelLibrary.load_for("cpu", KERNELS).path
    arguments, expected = EXAMPLES[name]
    done = subprocess.run([program, library, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    if name == "export_json":
        assert {"registry", "explanation"} == set(json.loads(done.stdout))

"""Whose threads run launches: chosen for the process, a loaded OpenMP runtime's, own ones in forked children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.dispatch import SelectionError, threads_in_use, use_threads
from kernelwright.dispatch.testdata import mocks

RUNTIME = """
int omp_get_max_threads(void) { return 2; }
int omp_in_parallel(void) { return 0; }
void GOMP_parallel(void (*part)(void*), void* data, unsigned threads, unsigned flags) { part(data); }
"""
PROGRAM = """
import ctypes, os, sys
from kernelwright.dispatch import threads, use_threads, threads_in_use
print(use_threads().source)
ctypes.CDLL(sys.argv[1])
threads.share_with_torch()
print(*threads_in_use())
child = os.fork()
if child == 0:
    print(threads_in_use().source, flush=True)
    try:
        use_threads("openmp")
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(use_threads("own").source)
threads.share_with_torch()
print(threads_in_use().source)
"""


@pytest.fixture(autouse=True)
def native_library() -> None:
    mocks.native_library()


def test_the_default_is_threads_of_our_own_where_no_openmp_is_loaded() -> None:
    assert use_threads("own") == ("own", "")
    assert threads_in_use() == ("own", "")
    use_threads("auto")


def test_another_source_is_refused_with_those_that_are_allowed() -> None:
    with pytest.raises(SelectionError, match="'tbb'; allowed: auto, own, openmp"):
        use_threads("tbb")  # type: ignore[arg-type]


def test_a_loaded_openmp_runtime_is_taken_and_children_have_threads_of_their_own(tmp_path: Path) -> None:
    source, runtime = tmp_path / "runtime.c", tmp_path / "libgomp-stand-in.so"
    source.write_text(RUNTIME)
    mocks.compile_shared([*mocks.compilers()[0], str(source)], runtime)
    program = [sys.executable, "-u", "-c", PROGRAM, str(runtime)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    run = subprocess.run(
        program, env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[:2] == ["own", f"openmp {runtime}"]
    assert lines[2] == "own" and "forked child" in lines[3]
    assert lines[4:] == ["own", "own"]

"""What a person sees of a kernel that compiles for long, in a build without a terminal."""

from __future__ import annotations

import contextlib
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.workspace import ROOT, Workspace

COMPILER = ROOT / "tests/faults/fake_compiler.sh"
# Compiles when it may, and links at once.
SLOW = """#!/bin/sh
case " $* " in *" --version "* | *" -shared "*) ;; *) while [ ! -e {leave} ]; do sleep 0.1; done ;; esac
exec {compiler} "$@"
"""
BUILD = """
gemm_kernel(name="k", arch="x86_64_v3", dtype="fp32", layout="rrr", tile=[48, 64, 256], warp_tile=[6, 16, 1])
kernel_library(name="lib", dependencies=[":k"])
"""
HEADER = "dispatcher_cpp/include/kernelwright/cpu/gemm/kernel.hpp"
BEGINS = "Building liblib.so for x86_64_v3: 1 kernel\n"
WAITS = "liblib.so for x86_64_v3: 0 of 1 kernel done\n"


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    """A compiler that waits for a file ``leave`` beside it, by a path of which no cache knows anything."""
    program = tmp_path / f"compiler-{secrets.token_hex(8)}"
    program.write_text(SLOW.format(leave=tmp_path / "leave", compiler=COMPILER))
    program.chmod(0o755)
    return program


@contextlib.contextmanager
def building(workspace: Workspace, compiler: Path) -> Iterator[subprocess.Popen[str]]:
    """A build in the background, which gets an interrupt in the end."""
    workspace.write("p/BUILD", BUILD)
    options = (
        "--keep-sandboxes=always",
        "--kernelwright-host-toolchain=system",
        f"--kernelwright-host-path={compiler}",
    )
    command = (workspace.launcher, *options, "package", "p:lib")
    pants = subprocess.Popen(command, cwd=workspace.root, stderr=subprocess.PIPE, text=True)
    try:
        yield pants
    finally:
        pants.send_signal(signal.SIGINT)
        pants.communicate(timeout=600)


def lines_until(pants: subprocess.Popen[str], last: str, times: int = 1) -> list[str]:
    """The lines of a build without the times of day, until one has come so often."""
    lines: list[str] = []
    assert pants.stderr
    for line in pants.stderr:
        lines.append(line.partition("[INFO] ")[2] or line)
        if lines.count(last) == times:
            return lines
    pytest.fail(f"{last!r} did not come {times} times: {''.join(lines)}")


def lines_to_the_end(pants: subprocess.Popen[str]) -> list[str]:
    """The further lines of a build that succeeds."""
    assert pants.stderr
    lines = [line.partition("[INFO] ")[2] or line for line in pants.stderr]
    assert pants.wait(600) == 0, lines
    return lines


def test_a_kernel_that_compiles_for_long_is_told_and_its_compile_is_not(workspace: Workspace, compiler: Path) -> None:
    with building(workspace, compiler) as pants:
        lines = lines_until(pants, WAITS, times=2)
        compiler.with_name("leave").touch()
        lines += lines_to_the_end(pants)
    assert lines.count(BEGINS) == 1
    assert [line for line in lines if line.startswith(("Starting: Compile", "Completed: Compile"))] == []


def test_a_change_of_a_header_is_told_before_its_kernels(workspace: Workspace, compiler: Path) -> None:
    """Pants then begins with the rules of kernels, long before that of the library."""
    leave = compiler.with_name("leave")
    leave.touch()
    with building(workspace, compiler) as pants:
        assert lines_to_the_end(pants).count(BEGINS) == 1
    leave.unlink()
    text = (workspace.root / HEADER).read_text()
    workspace.write(HEADER, f"{text}// {secrets.token_hex(8)}\n")
    try:
        with building(workspace, compiler) as pants:
            lines = lines_until(pants, WAITS)
            assert lines.count(BEGINS) == 1
            leave.touch()
            lines_to_the_end(pants)
    finally:
        workspace.write(HEADER, text)


def test_a_build_that_is_interrupted_tells_the_next_one_nothing(workspace: Workspace, compiler: Path) -> None:
    with building(workspace, compiler) as pants:
        lines_until(pants, WAITS)
    with building(workspace, compiler) as pants:
        lines = lines_until(pants, WAITS)
    assert lines.count(BEGINS) == 1
    assert [line for line in lines if "kernel done" in line] == [WAITS]

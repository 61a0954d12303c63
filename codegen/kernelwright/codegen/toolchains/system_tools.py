"""Compilers of this machine chosen by a word: found, tried, and identified by a fingerprint.

``system`` finds the compiler as other build tools do, ``system:/usr/bin/g++`` names it. The fingerprint is that of the
Pants plugin, so both name a compiler alike in manifests.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelwright.codegen.violations import SpecError

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_TIMEOUT_S = 60


@dataclass(frozen=True)
class SystemTool:
    """A toolchain that needs a program, or a folder of programs, of the machine.

    ``argument`` is the factory's parameter for the path. Without a path, the first of ``variables`` that is set names
    it, else the first of ``names`` on the PATH, else ``place``. ``programs`` are those in it, of which the first is
    fingerprinted.
    """

    what: str
    argument: str
    example: str
    variables: tuple[str, ...]
    names: tuple[str, ...] = ()
    place: str = ""
    programs: tuple[str, ...] = ("{0}",)


_COMPILERS = ("c++", "g++", "clang++")
SYSTEM_TOOLS: Mapping[tuple[str, str], SystemTool] = {
    ("host", "system"): SystemTool("C++ compiler", "path", "/usr/bin/g++", ("CXX",), _COMPILERS),
    ("hip", "rocm"): SystemTool(
        *("ROCm", "path", "/opt/rocm", ("ROCM_PATH",)),
        place="/opt/rocm",
        programs=("{0}/llvm/bin/clang++", "{0}/llvm/bin/ld.lld"),
    ),
    ("cuda", "nvcc"): SystemTool("host compiler", "host_compiler", "/usr/bin/g++", ("CUDAHOSTCXX", "CXX"), _COMPILERS),
    ("cuda", "system-nvcc"): SystemTool(
        "nvcc", "path", "/usr/local/cuda/bin/nvcc", ("CUDACXX",), ("nvcc",), "/usr/local/cuda/bin/nvcc"
    ),
}
"""Tools by kind and choice of a toolchain; other choices are pinned wheels and need nothing of the machine."""


def system_options(kind: str, choice: str, path: str) -> dict[str, str]:
    """Return the arguments of a toolchain's factory: path and fingerprint; none for one of pinned wheels.

    ``path`` is the text after the colon, or empty. SpecError, with what to do, for a path to a toolchain that takes
    none, for a relative one, and for a program that is missing or does not run.
    """
    tool = SYSTEM_TOOLS.get((kind, choice))
    if tool is None:
        if path:
            takers = [f"{name}:{one.example}" for (own, name), one in SYSTEM_TOOLS.items() if own == kind]
            raise SpecError(
                f"{kind} toolchain {choice!r} takes no path; leave :{path} out; with a path: {', '.join(takers)}"
            )
        return {}
    asked = f"{kind} toolchain {choice!r}"
    hint = f"give its path: {choice}:{tool.example}"
    tool_path = path or _named(tool, asked, hint) or _searched(tool, asked, hint)
    if not os.path.isabs(tool_path):
        raise SpecError(f"{asked}: {tool.what} {tool_path!r} is not an absolute path; {hint}")
    prints = [_fingerprint_of(program.format(tool_path), asked, hint) for program in tool.programs]
    return {tool.argument: tool_path, "fingerprint": prints[0]}


def _named(tool: SystemTool, asked: str, hint: str) -> str:
    for variable in tool.variables:
        value = os.environ.get(variable)
        if value:
            tool_path = value if tool.place and not tool.names else shutil.which(value)
            if tool_path is None:
                raise SpecError(f"{asked}: {variable} is {value!r}; allowed: one program on PATH, or its path; {hint}")
            return os.path.abspath(tool_path)
    return ""


def _searched(tool: SystemTool, asked: str, hint: str) -> str:
    for name in tool.names:
        program = shutil.which(name)
        if program:
            return os.path.abspath(program)
    if tool.place and Path(tool.place).exists():
        return tool.place
    looked = " or ".join((*tool.variables, *tool.names)) + (f", nor {tool.place}" if tool.place else "")
    raise SpecError(f"{asked}: no {tool.what} was found by {looked}; install one, or {hint}")


def _fingerprint_of(program: str, asked: str, hint: str) -> str:
    try:
        status = os.stat(program)
        return _fingerprint(program, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
    except subprocess.SubprocessError as error:
        why = str(error)
    raise SpecError(f"{asked}: {program} cannot be run: {why}; {hint}")


@functools.cache
def _fingerprint(program: str, stamp: tuple[int, ...]) -> str:
    """Return a sha256 over the program's version output and its bytes; ``stamp`` changes when the file does."""
    command = [program, "--version"]
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, env=_ENVIRONMENT, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().partition("\n")[0]
        raise ValueError(f"--version ended with {done.returncode}: {said or 'it said nothing'}")
    digest = hashlib.sha256(Path(program).read_bytes()).hexdigest()
    return hashlib.sha256(done.stdout + f"{digest}  {program}\n".encode()).hexdigest()  # the line of sha256sum

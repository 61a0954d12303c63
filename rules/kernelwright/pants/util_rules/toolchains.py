"""The toolchains of this build, as the generator's requests name them, with fingerprints of system tools."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Optional

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import processes
from kernelwright.pants.engine.exit_codes import BadInput
from kernelwright.pants.subsystems.toolchains import (
    CudaToolchainSubsystem,
    HipToolchainSubsystem,
    HostToolchainSubsystem,
)
from pants.engine.process import Process, ProcessCacheScope
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel


class ToolchainError(BadInput):
    """A toolchain option names an unknown toolchain or a program that cannot be run."""


@dataclass(frozen=True)
class Toolchain:
    """A choice; for tools of the machine also the argument that takes the path, the path, and its fingerprint."""

    id: str
    argument: Optional[str] = None
    path: Optional[str] = None
    fingerprint: Optional[str] = None

    def to_json(self) -> object:
        """Return the value as in the generator's requests."""
        if self.argument is None:
            return self.id
        return {"choice": self.id, self.argument: self.path, "fingerprint": self.fingerprint}


@dataclass(frozen=True)
class Toolchains:
    """One choice for each kind of compiler."""

    host: Toolchain
    hip: Toolchain
    cuda: Toolchain

    def to_json(self) -> dict[str, object]:
        """Return the value as in the generator's requests."""
        return {"host": self.host.to_json(), "hip": self.hip.to_json(), "cuda": self.cuda.to_json()}


@dataclass(frozen=True)
class SystemToolRequest:
    """A compiler of the machine by its absolute path; ``option`` is the option that names it."""

    path: str
    option: str


@dataclass(frozen=True)
class SystemTool:
    """The compiler with a sha256 over its bytes and its version output."""

    path: str
    fingerprint: str


@rule(desc="Fingerprint a system compiler", level=LogLevel.DEBUG)
async def fingerprint_system_tool(request: SystemToolRequest) -> SystemTool:
    # Once per daemon: a compiler may be upgraded while a long-lived cache stays.
    result = await processes.try_run(
        Process(
            ("/bin/sh", "-c", '"$0" --version && sha256sum "$0"', request.path),
            description=f"Fingerprint {request.path}",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            cache_scope=ProcessCacheScope.PER_RESTART_SUCCESSFUL,
            level=LogLevel.DEBUG,
        )
    )
    if result.exit_code != 0:
        raise ToolchainError(f"{request.option} = {request.path!r} cannot be run: {result.stderr.decode().strip()}")
    return SystemTool(request.path, hashlib.sha256(result.stdout).hexdigest())


@dataclass(frozen=True)
class SystemChoice:
    """A toolchain that uses a program of the machine: the option that names a path, and the program relative to it."""

    option: str
    program: str = "{0}"


_HOST = {"zig": None, "system": SystemChoice("path")}
_HIP = {"wheel": None, "stock": None, "rocm": SystemChoice("path", "{0}/llvm/bin/clang++")}
_CUDA = {"clang": None, "stock": None, "nvcc": SystemChoice("host_compiler"), "system-nvcc": SystemChoice("path")}


@rule(desc="Choose toolchains", level=LogLevel.DEBUG)
async def choose_toolchains(
    host: HostToolchainSubsystem, hip: HipToolchainSubsystem, cuda: CudaToolchainSubsystem
) -> Toolchains:
    chosen = []
    for subsystem, choices in ((host, _HOST), (hip, _HIP), (cuda, _CUDA)):
        scope, name = subsystem.options_scope, subsystem.toolchain
        if name not in choices:
            raise ToolchainError(f"[{scope}].toolchain = {name!r}; allowed: {', '.join(choices)}")
        choice = choices[name]
        if choice is None:
            chosen.append(Toolchain(name))
            continue
        path = subsystem.options.get(choice.option)
        if not path:
            raise ToolchainError(f"[{scope}].toolchain = {name!r} needs [{scope}].{choice.option}")
        asked = SystemToolRequest(choice.program.format(path), f"[{scope}].{choice.option}")
        tool = await fingerprint_system_tool(asked, **implicitly())
        chosen.append(Toolchain(name, choice.option, path, tool.fingerprint))
    return Toolchains(*chosen)


def rules() -> list[object]:
    return [*collect_rules()]

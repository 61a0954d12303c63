"""Builds that cost next to nothing: a copy of the repository, a fake compiler, stores of their own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from e2e.workspace import Run, Workspace

COMPILER = Path(__file__).with_name("fake_compiler.sh")
_LIBRARY = """
gemm_kernel(name="k{n}", arch="x86_64_v3", dtype="fp32", layout="rrr", tile=[48, 64, {k}], warp_tile=[6, 16, 1])
kernel_library(name="lib{n}", dependencies=[":k{n}"])
"""


class CheapBuilds:
    """Libraries ``t:lib0``, ``t:lib1``, … of one kernel each, in a workspace whose store nobody else uses."""

    def __init__(self, folder: Path, libraries: int, *options: str, trace: bool = False) -> None:
        self.workspace = Workspace(folder, trace=trace)
        self.store = folder / "store"
        self.options = (
            f"--local-store-dir={self.store}",
            "--kernelwright-host-toolchain=system",
            f"--kernelwright-host-path={COMPILER}",
            *options,
        )
        self._text = ""
        for n in range(libraries):
            self.add(n)

    def add(self, n: int) -> None:
        """Another library."""
        self._text += _LIBRARY.format(n=n, k=64 + n)
        self.workspace.write("t/BUILD", self._text)

    def package(self, *libraries: int, timeout: float = 120) -> Run:
        """``package`` of these libraries; subprocess.TimeoutExpired if it hangs."""
        command = (*self.options, "package", *(f"t:lib{n}" for n in libraries))
        return self.workspace.pants(*command, timeout=timeout)

    def library(self, n: int) -> bytes:
        """The packaged library."""
        return (self._folder(n) / f"liblib{n}.so").read_bytes()

    def is_whole(self, n: int) -> bool:
        """Whether the packaged library is the one that its manifest describes."""
        manifest = json.loads((self._folder(n) / "manifest.json").read_text())
        return bool(manifest["sha256"] == hashlib.sha256(self.library(n)).hexdigest())

    def close(self) -> None:
        """Stop the daemon."""
        self.workspace.close()

    def _folder(self, n: int) -> Path:
        return self.workspace.root / f"dist/t/lib{n}/x86_64_v3"

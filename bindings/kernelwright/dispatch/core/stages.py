"""The kernels chosen for a problem, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernelwright.dispatch.core.kernel import KernelEntry


@dataclass(frozen=True, repr=False)
class Selection:
    """The kernel chosen for a problem.

    :ivar kernel: the kernel.
    :ivar reason: why, in a few words; :meth:`Dispatcher.explain` has the whole ranking.
    """

    kernel: KernelEntry
    reason: str

    def __repr__(self) -> str:
        """Kernel and reason."""
        return f"<Selection of {self.kernel.short}: {self.reason}>"


@dataclass(frozen=True, repr=False)
class Stage:
    """One kernel of a plan; a launch starts all stages in sequence.

    :ivar kernel: the kernel.
    :ivar reason: why it was chosen, in a few words.
    :ivar choices: its values of what the problem leaves open, such as ``split_k=4``; empty if nothing was open.
    :ivar workspace_bytes: bytes of scratch memory that the kernel itself needs.
    :ivar scratch_bytes: bytes of results that it leaves in the workspace for later stages.
    :ivar scratch_offset: their offset in the workspace, in bytes.
    """

    kernel: KernelEntry
    reason: str
    choices: str
    workspace_bytes: int
    scratch_bytes: int
    scratch_offset: int
    library: Any = field(compare=False)  # POINTER(native.LibraryStruct)

    def __repr__(self) -> str:
        """Kernel, choices and reason."""
        return f"<Stage {self.kernel.short}{self.choices and f', {self.choices}'}: {self.reason}>"

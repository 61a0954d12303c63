"""One kernel of a loaded library, as selection, plans and users see it, and kernels that were chosen for a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.problems.short_names import short_name


@dataclass(frozen=True, repr=False)
class KernelEntry:
    """One kernel of a library, as its manifest describes it.

    :ivar name: readable name, unique within an architecture; never parsed.
    :ivar identity: 64 hex digits, the sha256 of the canonical JSON of architecture and spec.
    :ivar arch: target architecture, such as ``gfx942``.
    :ivar spec: the spec that the kernel was built from, as JSON values.
    :ivar features: features that the device must have beyond ``arch``, separated by spaces.
    :ivar object_sha256: sha256 of the object file that the library links for the kernel, or None. An AMD kernel has two
        (descriptor and embedded code object): sha256 of their concatenated hex digests. It tells whether two builds
        made the same kernel.
    :ivar resources: registers, LDS and so on as docs/resources.md lists them, or None.
    """

    name: str
    identity: str
    arch: str
    spec: Mapping[str, Any]
    features: str = ""
    object_sha256: str | None = None
    resources: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        """The name."""
        return self.name

    @property
    def short(self) -> str:
        """Short description, such as ``bf16 rcr 128x128x32 +D gelu``; several kernels may share it."""
        return short_name(self.spec, self.name)

    def __repr__(self) -> str:
        """Architecture, short description and the beginning of the identity, then the name."""
        said = f"{type(self).__name__} {self.arch}: {self.short}"
        return f"<{said}, {self.identity[:12]}{(self.short != self.name and chr(10) + ' ' + self.name) or ''}>"


@dataclass(frozen=True, repr=False)
class Candidate(KernelEntry):
    """A kernel that serves a problem, with a value of what the problem leaves open; selection functions score these.

    :ivar value: slices of k for GEMM and for convolution backward weight; splits for attention; 0 if the problem leaves
        nothing open.
    """

    value: int = 0

    def __repr__(self) -> str:
        """The kernel's ``repr`` with the value."""
        return f"{super().__repr__()[:-1]} value={self.value}>"

    @classmethod
    def of(cls, kernel: KernelEntry, value: int) -> Candidate:
        """Pair the kernel with a value."""
        return cls(**vars(kernel), value=value)


def count_of(number: int, noun: str) -> str:
    """Format a count, such as ``1 kernel`` or ``4 kernels``."""
    return f"{number} {noun}{'s' * (number != 1)}"


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

"""One kernel of a loaded library, as selection, plans and users see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class KernelEntry:
    """One kernel of a library, as its manifest describes it.

    :ivar name: readable name, unique within an architecture; never parsed.
    :ivar identity: 64 hex digits, the sha256 of the canonical JSON of architecture and spec.
    :ivar arch: architecture that the kernel was compiled for, such as ``gfx942``.
    :ivar spec: the spec that the kernel was built from, as JSON values.
    :ivar features: features that the device must have beyond ``arch``, separated by spaces.
    :ivar object_sha256: sha256 of the object file that the library links for the kernel, or None. An AMD kernel has two
        (descriptor and embedded code object): sha256 of their digests in hex, one after another. It tells whether two
        builds made the same kernel.
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

    def __repr__(self) -> str:
        """Name, architecture and the beginning of the identity."""
        return f"<{type(self).__name__} {self.arch}/{self.name} {self.identity[:12]}>"


@dataclass(frozen=True, repr=False)
class Candidate(KernelEntry):
    """A kernel that serves a problem, with a value of what the problem leaves open: what a selection function scores.

    :ivar value: slices of k, of GEMM and backward weight of convolutions; splits of attention; 0 where the problem
        leaves nothing open.
    """

    value: int = 0

    def __repr__(self) -> str:
        """As of the kernel, with the value."""
        return f"{super().__repr__()[:-1]} value={self.value}>"

    @classmethod
    def of(cls, kernel: KernelEntry, value: int) -> Candidate:
        """The kernel with a value."""
        return cls(**vars(kernel), value=value)


def count_of(number: int, noun: str) -> str:
    """E.g. ``1 kernel`` or ``4 kernels``."""
    return f"{number} {noun}{'s' * (number != 1)}"

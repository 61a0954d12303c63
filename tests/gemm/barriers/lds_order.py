"""The order of barriers and accesses of LDS in device assembly.

CK Tile calls the compiler's plain barrier, which says nothing about memory: a load from LDS may be sunk below it, to
where another wave overwrites what it reads. A compile with barriers that no access crosses shows whether one was.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

FENCED = """#include <hip/hip_runtime.h>
namespace kernelwright_test {
__device__ inline __attribute__((always_inline)) void fenced_barrier() {
  asm volatile("" ::: "memory");
  __builtin_amdgcn_s_barrier();
  asm volatile("" ::: "memory");
}
}  // namespace kernelwright_test
#define __builtin_amdgcn_s_barrier kernelwright_test::fenced_barrier
"""
"""In front of a kernel's header: barriers that the compiler moves no access of memory across. They cost nothing."""

_LABEL = re.compile(r"^[.\w$]+:")
_INSTRUCTION = re.compile(r"^\s+([a-z]\w+)(.*)")
_BARRIERS = ("s_barrier", "s_barrier_signal")
_LANES = ("ds_bpermute", "ds_permute", "ds_swizzle")  # exchange registers of lanes: no access of LDS
_WIDTH = re.compile(r"_[biuf](\d+)")


@dataclass
class Accesses:
    """Bits of LDS that a lane reads and writes by LDS instructions, and its loads from memory straight into LDS."""

    read: int = 0
    written: int = 0
    direct: int = 0


def lds_order(assembly: str) -> list[Accesses | str]:
    """What lies between barriers and labels, and these, in their order; parts without an access are left out."""
    parts: list[Accesses | str] = []
    part = Accesses()
    for raw in assembly.splitlines():
        line = raw.split(";")[0]
        instruction = _INSTRUCTION.match(line)
        name = instruction.group(1) if instruction else ""
        if _LABEL.match(line) or name in _BARRIERS:
            parts += [part, "barrier" if name else "label"]
            part = Accesses()
        elif name.startswith("ds_") and not name.startswith(_LANES):
            width = _WIDTH.search(name)
            bits = (int(width.group(1)) if width else 32) * (2 if re.search(r"(read|write|load|store)_?2", name) else 1)
            if "read" in name or "load" in name:
                part.read += bits
            else:
                part.written += bits
        elif instruction and "_load_" in name and re.search(r"\blds\b|_lds_", name + instruction.group(2)):
            part.direct += 1
    return [one for one in (*parts, part) if one != Accesses()]


def without_order(order: list[Accesses | str]) -> Counter[str]:
    """The parts and barriers alone: what stays the same where the compiler lays blocks out in another order.

    A load that left a part, or joined one, shows; one that left its part empty for another empty one does not.
    """
    return Counter(str(one) for one in order if one != "label")

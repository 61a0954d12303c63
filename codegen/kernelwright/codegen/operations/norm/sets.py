"""Norm sets: what models ask for, and every way to share a row, to choose from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expansion, KernelSets
from kernelwright.codegen.operations.norm.constraints.common import DTYPES, RESULTS
from kernelwright.codegen.operations.norm.constraints.cpu import UNROLLS
from kernelwright.codegen.operations.norm.spec import Direction, Kind
from kernelwright.codegen.selecting.expand import archs_with
from kernelwright.codegen.selecting.specs import parse_kernel

_CPU: Mapping[str, tuple[int, ...]] = {"essential": (4,), "default": (4,), "all": UNROLLS}

_WAVE, _SHORT_BLOCK = 0, 256
"""Stands for a row handled by one wave; threads of the workgroups of such rows."""
_GPU: Mapping[str, tuple[tuple[int, int], ...]] = {
    "essential": ((256, 4),),
    "default": ((_WAVE, 2), (128, 4), (512, 4)),
    "all": tuple(itertools.product((_WAVE, 128, 256, 512, 1024), (1, 2, 4))),
}
_GRADIENTS = {**_GPU, "essential": ((256, 2),), "default": ((_WAVE, 2), (256, 2), (512, 4))}
"""Threads of a row, and vectors that each keeps; gradients keep more per vector."""


class NormSets(KernelSets):
    """Kernels of each kind, direction and pair of types that an architecture has.

    ``essential`` has one of each; ``default`` has, on GPUs, those for short, usual and long rows; ``all`` has every
    unrolling on CPUs, every number of threads and vectors on GPUs.
    """

    def names(self) -> tuple[str, ...]:
        """Every name."""
        return tuple(_CPU)

    def archs(self, name: str) -> tuple[str, ...]:
        """All shipped architectures."""
        return archs_with(lambda arch: self.expand(name, arch))

    def expand(self, name: str, arch: Arch) -> Expansion:
        """The kernels of a set."""
        return Expansion(tuple(_kernels(name, arch)))


def _kernels(name: str, arch: Arch) -> Iterator[Kernel]:
    results = [one for one in RESULTS if one is not DType.FP8 or arch.flops_per_clock_per_cu.get(one)]
    for kind, dtype in itertools.product(Kind, DTYPES):
        forward = [(Direction.FORWARD, result) for result in (dtype, *results)]
        for direction, result in (*forward, (Direction.BACKWARD, dtype)):
            types = {"op": "norm", "kind": kind, "direction": direction, "dtype": dtype, "dtype_y": result}
            yield from (parse_kernel({**types, **tile}, arch) for tile in _tiles(name, direction, arch))


def _tiles(name: str, direction: Direction, arch: Arch) -> Iterator[dict[str, Any]]:
    if arch.backend == "cpu":
        yield from ({"unroll": one} for one in _CPU[name])
        return
    for threads, unroll in (_GPU if direction is Direction.FORWARD else _GRADIENTS)[name]:
        row, rows = (threads, 1) if threads != _WAVE else (arch.wave_size, _SHORT_BLOCK // arch.wave_size)
        yield {"threads_per_row": row, "rows_per_block": rows, "unroll": unroll}

"""GEMM kernels launched straight from a code object, with the arguments of kernelwright/hip/gemm/arguments.h."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

import numpy as np

from gemm.amd.operands import Matrix, element_type, exact_product, fill_integers, rounded
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.run.report import LaunchReport

_ARGUMENTS = struct.Struct("<9Q7q6i4i3i2fi")
"""kw_hip_gemm_arguments: pointers, strides, extents, leading dimensions of D tensors, counts, alpha and beta."""


@dataclass
class Product:
    """D = A·B of small integers for ``planes`` results, one below the other; A is row-major."""

    arch: str
    m: int
    n: int
    k: int
    layout: str = "rcr"
    dtype: str = "fp16"
    dtype_d: str = "fp16"
    planes: int = 1
    a: Matrix = field(init=False)
    b: Matrix = field(init=False)
    d: Matrix = field(init=False)

    def __post_init__(self) -> None:
        element, result = element_type(self.dtype, self.arch), element_type(self.dtype_d, self.arch)
        a_row, b_row = self.layout[0] == "r", self.layout[1] == "r"
        self.a = Matrix(self.layout[0], self.m, self.k, self.k if a_row else self.m, element)
        self.b = Matrix(self.layout[1], self.k, self.n, self.n if b_row else self.k, element)
        self.d = Matrix("r", self.planes * self.m, self.n, self.n, result)
        rng = np.random.default_rng([self.m, self.n, self.k])
        fill_integers(self.a, rng)
        fill_integers(self.b, rng)

    def launch(
        self,
        image: bytes,
        kernel: str,
        *,
        tile: tuple[int, int],
        block: int,
        checks: Checks = Checks(),  # noqa: B008  (frozen)
        seed: int | None = None,
    ) -> LaunchReport:
        """Run a kernel of ``block`` work-items per tile. Fault for what it does wrong."""
        a, b, d = self.a, self.b, self.d
        sizes = (self.m, self.n, self.k, a.leading, b.leading, d.leading)
        return Simulator(checks=checks, seed=seed).launch(
            image,
            kernel,
            grid=(math.ceil(self.m / tile[0]) * math.ceil(self.n / tile[1]), self.planes, 1),
            block=(block, 1, 1),
            arguments=_ARGUMENTS.pack(
                a.address, b.address, 0, d.address, *[0] * 12, *sizes, *[0] * 4, 1, 1, 0, 1.0, 0.0, 0
            ),
            buffers=[
                Buffer(a.address, a.nbytes, writable=False, name="A"),
                Buffer(b.address, b.nbytes, writable=False, name="B"),
                Buffer(d.address, d.nbytes, name="D"),
            ],
        )

    def right(self, plane: int = 0) -> bool:
        """Whether a plane of the result is exact."""
        actual = self.d.values[plane * self.m : (plane + 1) * self.m]
        wanted = rounded(exact_product(self.a, self.b), self.d.dtype)
        return bool((actual.astype(np.float64) == wanted.astype(np.float64)).all())

"""The time model of GEMM as :class:`kernelwright.codegen.operation.TimeModel` describes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import CPU_CORES
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Way
from kernelwright.codegen.operations.gemm.spec import Activation, DOp, GemmSpec, gemm_spec
from kernelwright.codegen.operations.gemm.time_model.posed import Posed, read_posed
from kernelwright.codegen.operations.gemm.time_model.serves import refusal
from kernelwright.codegen.operations.gemm.time_model.slices import slices
from kernelwright.codegen.operations.gemm.time_model.times import estimate


class GemmTimeModel:
    """Predicts times and says which sets could serve a problem."""

    recorded = ("gemm",)

    def read(self, problem: Mapping[str, Any], recorded: str = "gemm") -> Posed:
        """See :func:`kernelwright.codegen.operations.gemm.time_model.posed.read_posed`."""
        return read_posed(problem)

    def measured(self, row: Mapping[str, str]) -> Posed | None:
        """Rows of products have extents m, n and k, a batch and a layout."""
        if "m" not in row:
            return None
        extents = {name: int(row[name]) for name in ("m", "n", "k", "batch")}
        return read_posed({**extents, **{name: row[name] for name in ("layout", "dtype", "dtype_c")}})

    def key(self, posed: Posed) -> Hashable:
        """Equal for problems that one measurement stands for."""
        return dataclasses.replace(posed, split_k=0)

    def candidate_sets(self, posed: Posed) -> tuple[str, ...]:
        """All preselected kernels of the problem's type and layout, and the written sets."""
        return ("essential", "default", f"{posed.types[0]}_{posed.layout}_all")

    def fitted(self, kernel: Kernel, posed: Posed) -> GemmSpec | None:
        """A kernel of the problem's types and layout with its D tensors and activation, on every tile."""
        spec = gemm_spec(kernel)
        types = (spec.dtype_a, spec.dtype_b, spec.dtype_c, spec.dtype_acc) == posed.types
        if not types or spec.layout != posed.layout or spec.preshuffle or spec.grouped:
            return None
        d_op = {"d_op": DOp(posed.d_op)} if posed.num_d else {}
        asked = {"num_d": posed.num_d, "activation": Activation(posed.activation), **d_op}
        return None if spec.num_d and not posed.num_d else spec.model_copy(update=asked)

    def ways(self, kernel: Kernel, posed: Posed, arch: Arch) -> tuple[Way, ...]:
        """A plan is one launch."""
        us = self.microseconds(kernel, posed, arch)
        return () if us is None else (Way(us),)

    def microseconds(self, kernel: Kernel, posed: Posed, arch: Arch) -> float | None:
        """With the best number of slices of k, on the stated device or CPU_CORES; None if the kernel does not serve."""
        spec = gemm_spec(kernel)
        if refusal(spec, posed, arch):
            return None
        if posed.m == 0 or posed.n == 0:
            return 0.0
        units = arch.compute_units or CPU_CORES
        counts = slices(spec, posed, arch.backend, units)
        return min(estimate(spec, posed, arch, count, units).total_us for count in counts)

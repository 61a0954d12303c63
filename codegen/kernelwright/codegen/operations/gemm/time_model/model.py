"""The time model of GEMM, as :class:`kernelwright.codegen.operation.TimeModel` describes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import CPU_CORES
from kernelwright.codegen.inputs import recorded_problem
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Candidate
from kernelwright.codegen.operations.gemm.spec import Activation, DOp, GemmSpec, gemm_spec
from kernelwright.codegen.operations.gemm.time_model.serves import refusal
from kernelwright.codegen.operations.gemm.time_model.slices import slices
from kernelwright.codegen.operations.gemm.time_model.times import estimate
from kernelwright.problems.gemm.problem import GemmProblem


class GemmTimeModel:
    """Predicts times and says which sets could serve a problem."""

    recorded = ("gemm",)

    def read(self, raw: Mapping[str, Any], recorded: str = "gemm") -> GemmProblem:
        """See :func:`kernelwright.codegen.inputs.recorded_problem`."""
        return recorded_problem(GemmProblem, raw, "GEMM problem")

    def measured(self, row: Mapping[str, str]) -> GemmProblem | None:
        """Read the problem of a row, which has extents m, n and k, a batch and a layout."""
        if "m" not in row:
            return None
        extents = {name: int(row[name]) for name in ("m", "n", "k", "batch")}
        return self.read({**extents, **{name: row[name] for name in ("layout", "dtype", "dtype_c")}})

    def key(self, problem: GemmProblem) -> Hashable:
        """Return a key that is equal for problems that one measurement stands for."""
        return dataclasses.replace(problem, split_k=0)

    def candidate_sets(self, problem: GemmProblem) -> tuple[str, ...]:
        """Return all preselected kernels of the problem's type and layout, and the written sets."""
        return ("coverage", "default", f"{problem.types[0]}_{problem.layout}_all")

    def fitted(self, kernel: Kernel, problem: GemmProblem) -> GemmSpec | None:
        """Return a kernel of the problem's types and layout with its D tensors and activation, on every tile."""
        spec = gemm_spec(kernel)
        types = (spec.dtype_a, spec.dtype_b, spec.dtype_c, spec.dtype_acc) == problem.types
        if not types or spec.layout != problem.layout or spec.preshuffle or spec.grouped:
            return None
        d_op = {"d_op": DOp(problem.d_op)} if problem.num_d else {}
        asked = {"num_d": problem.num_d, "activation": Activation(problem.activation), **d_op}
        return None if spec.num_d and not problem.num_d else spec.model_copy(update=asked)

    def candidates(self, kernel: Kernel, problem: GemmProblem, arch: Arch) -> tuple[Candidate, ...]:
        """Return plans of one launch."""
        us = self.microseconds(kernel, problem, arch)
        return () if us is None else (Candidate(us),)

    def microseconds(self, kernel: Kernel, problem: GemmProblem, arch: Arch) -> float | None:
        """Return the time with the best number of k slices, on the stated device or CPU_CORES; None if not served."""
        spec = gemm_spec(kernel)
        if refusal(spec, problem, arch):
            return None
        if problem.m == 0 or problem.n == 0:
            return 0.0
        units = arch.compute_units or CPU_CORES
        counts = slices(spec, problem, arch.backend, units)
        return min(estimate(spec, problem, arch, count, units).total_us for count in counts)

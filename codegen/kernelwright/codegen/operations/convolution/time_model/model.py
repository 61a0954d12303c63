"""The time model of convolution, as :class:`kernelwright.codegen.operation.TimeModel` describes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.devices import CPU_CORES
from kernelwright.codegen.inputs import recorded_problem
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Candidate
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec, conv_spec
from kernelwright.codegen.operations.convolution.time_model.serves import refusal
from kernelwright.codegen.operations.convolution.time_model.slices import slices
from kernelwright.codegen.operations.convolution.time_model.times import estimate
from kernelwright.problems.convolution.problem import ConvProblem

_SETS = ("release", "default", "tests")


class ConvTimeModel:
    """Predicts times and says which sets could serve a problem."""

    recorded = ("convolution",)

    def read(self, raw: Mapping[str, Any], recorded: str = "convolution") -> ConvProblem:
        """See :func:`kernelwright.codegen.inputs.recorded_problem`."""
        return recorded_problem(ConvProblem, raw, "convolution")

    def measured(self, row: Mapping[str, str]) -> ConvProblem | None:
        """Read the problem: rows have a direction and extents di, hi, wi of images, z, y, x of filters; 1 in 2D."""
        if not {"direction", "hi"} <= set(row):
            return None
        axes = "dhw" if (row["di"], row["z"]) != ("1", "1") else "hw"
        along = {
            name: [int(row[f"{word}_{axis}"]) for axis in axes]
            for name, word in (("stride", "stride"), ("pad_left", "pad"), ("dilation", "dilation"))
        }
        size = [int(row[f"{axis}i"]) for axis in axes]
        points = [int(row["zyx"["dhw".index(axis)]]) for axis in axes]
        counts = {"n": int(row["n"]), "c": int(row["c"]), "k": int(row["k"]), "groups": int(row["g"])}
        words = {"direction": row["direction"], "dtype": row["dtype"]}
        return self.read({**words, **counts, "size": size, "filter": points, **along})

    def key(self, problem: ConvProblem) -> Hashable:
        """Return a key that is equal for problems that one measurement stands for."""
        return dataclasses.replace(problem, split_k=None)

    def candidate_sets(self, problem: ConvProblem) -> tuple[str, ...]:
        """Return the written sets; profilers' sets have thousands of kernels and must be named by the user."""
        return _SETS

    def fitted(self, kernel: Kernel, problem: ConvProblem) -> GroupedConvSpec | None:
        """Return a forward kernel of the problem's type with its bias, residual and activation."""
        spec = conv_spec(kernel)
        if (spec.direction, problem.direction) != (Direction.FORWARD, Direction.FORWARD):
            return None
        if spec.dtype != problem.dtype:
            return None
        asked = {"bias": problem.bias, "residual": problem.residual, "activation": Activation(problem.activation)}
        return spec.model_copy(update=asked)

    def candidates(self, kernel: Kernel, problem: ConvProblem, arch: Arch) -> tuple[Candidate, ...]:
        """Return one-launch plans: kernels add up the slices that they leave."""
        us = self.microseconds(kernel, problem, arch)
        return () if us is None else (Candidate(us),)

    def microseconds(self, kernel: Kernel, problem: ConvProblem, arch: Arch, units: int | None = None) -> float | None:
        """Return the time with the best number of slices, on the stated device or CPU_CORES; None if not served."""
        spec = conv_spec(kernel)
        counts = [] if refusal(spec, problem, arch) else slices(spec, problem, arch.backend)
        if not counts:
            return None
        if problem.n == 0 and problem.direction != Direction.BACKWARD_WEIGHT:
            return 0.0
        units = units or arch.compute_units or CPU_CORES
        return min(estimate(spec, problem, arch, count, units).total_us for count in counts)

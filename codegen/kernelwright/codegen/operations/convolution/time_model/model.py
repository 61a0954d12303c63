"""The time model of convolution as :class:`kernelwright.codegen.operation.TimeModel` describes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import CPU_CORES
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Way
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec, conv_spec
from kernelwright.codegen.operations.convolution.time_model.posed import Posed, read_posed
from kernelwright.codegen.operations.convolution.time_model.serves import refusal
from kernelwright.codegen.operations.convolution.time_model.slices import slices
from kernelwright.codegen.operations.convolution.time_model.times import estimate

_SETS = ("essential", "release", "default", "tests")


class ConvTimeModel:
    """Predicts times and says which sets could serve a problem."""

    recorded = ("convolution",)

    def read(self, problem: Mapping[str, Any], recorded: str = "convolution") -> Posed:
        """See :func:`kernelwright.codegen.operations.convolution.time_model.posed.read_posed`."""
        return read_posed(problem)

    def measured(self, row: Mapping[str, str]) -> Posed | None:
        """Rows of convolutions have a direction and extents di, hi, wi of images, z, y, x of filters; 1 in 2D."""
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
        return read_posed({**words, **counts, "size": size, "filter": points, **along})

    def key(self, posed: Posed) -> Hashable:
        """Equal for problems that one measurement stands for."""
        return dataclasses.replace(posed, split_k=0)

    def candidate_sets(self, posed: Posed) -> tuple[str, ...]:
        """The written sets; profilers' sets have thousands of kernels, which a user may name."""
        return _SETS

    def fitted(self, kernel: Kernel, posed: Posed) -> GroupedConvSpec | None:
        """A forward kernel of the problem's type with its bias, residual and activation."""
        spec = conv_spec(kernel)
        if spec.direction is not Direction.FORWARD or posed.direction is not Direction.FORWARD:
            return None
        if spec.dtype is not posed.dtype:
            return None
        asked = {"bias": posed.bias, "residual": posed.residual, "activation": posed.activation}
        return spec.model_copy(update=asked)

    def ways(self, kernel: Kernel, posed: Posed, arch: Arch) -> tuple[Way, ...]:
        """A plan is one launch: kernels add up the slices that they leave."""
        us = self.microseconds(kernel, posed, arch)
        return () if us is None else (Way(us),)

    def microseconds(self, kernel: Kernel, posed: Posed, arch: Arch, units: int | None = None) -> float | None:
        """With the best number of slices, on the stated device or CPU_CORES; None if the kernel does not serve."""
        spec = conv_spec(kernel)
        counts = [] if refusal(spec, posed, arch) else slices(spec, posed, arch.backend)
        if not counts:
            return None
        if posed.n == 0 and posed.direction is not Direction.BACKWARD_WEIGHT:
            return 0.0
        units = units or arch.compute_units or CPU_CORES
        return min(estimate(spec, posed, arch, count, units).total_us for count in counts)

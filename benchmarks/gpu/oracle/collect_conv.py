"""Convolutions for collect.py: operands on the GPU, and results that must be exact."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from collecting import Workspace
from timing import COLD_BYTES, MOST_SETS, Call

from kernelwright.dispatch import ConvPlan, ConvProblem, OperationPlan

SLICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_LARGEST = 2  # of compared operands: sums of up to 2**22 products are exact in fp32
_TFLOPS, _GBYTES = 700.0, 4000.0
_READ = {"forward": "xw", "backward_data": "yw", "backward_weight": "xy"}
_WRITTEN = {"forward": "y", "backward_data": "x", "backward_weight": "w"}
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class PosedConv:
    """See :class:`collecting.Case`."""

    def __init__(self, problem: ConvProblem, device: str = "cuda") -> None:
        """Draw normally distributed operands for timing, and small integers for comparison."""
        self.problem, self.device = problem, device
        p = problem
        shapes = {"x": p.x_shape, "w": p.w_shape, "y": p.y_shape}
        kind, self._written = _TYPES[p.dtype], _WRITTEN[p.direction]
        self._count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / sum(p.span(name) for name in "xwy"))))
        self._sets, self._whole = {}, {}
        for name in _READ[p.direction]:
            shape = shapes[name]
            self._sets[name] = torch.randn(self._count, *shape, device=device, dtype=kind)
            self._whole[name] = torch.randint(-_LARGEST, _LARGEST + 1, shape, device=device, dtype=torch.int8).to(kind)
        self._out = torch.empty(shapes[self._written], device=device, dtype=kind)
        names = _READ[p.direction]
        self._addresses = [[self._sets[name][at].data_ptr() for name in names] for at in range(self._count)]
        self._addresses.append([self._whole[name].data_ptr() for name in names])
        self._expected: dict[torch.dtype, torch.Tensor] = {}
        self.us = max(p.flops / _TFLOPS / 1e6, p.bytes_moved / _GBYTES / 1e3, 3.0)

    def variants(self, spec: Mapping[str, Any]) -> Sequence[ConvProblem]:
        """Backward weight with every number of slices."""
        if self.problem.direction != "backward_weight":
            return [self.problem]
        return [self.problem, *(replace(self.problem, split_k=slices) for slices in SLICES)]

    def call(self, plan: OperationPlan[Any], workspace: Workspace) -> Call:
        """See :class:`collecting.Case`."""
        assert isinstance(plan, ConvPlan)
        out, on_gpu, addresses = self._out.data_ptr(), self._out.is_cuda, self._addresses

        def call(number: int) -> None:
            first, second = addresses[number % self._count if number >= 0 else -1]
            stream = torch.cuda.current_stream().cuda_stream if on_gpu else None
            plan(first, second, out, stream=stream, workspace=workspace.address(plan))

        return call

    def poison(self) -> None:
        """See :class:`collecting.Case`."""
        self._out.fill_(math.nan)

    def wrong(self) -> str:
        """Sums of integers are exact and rounded once, so every element equals torch's, in its own type or fp32."""
        kinds = (self._out.dtype, torch.float32)
        if any(torch.equal(self._out, self._exact(kind)) for kind in kinds):
            return ""
        return "differs from the sums of whole numbers"

    def _exact(self, kind: torch.dtype) -> torch.Tensor:
        if kind not in self._expected:
            with torch.backends.cudnn.flags(enabled=True, benchmark=False, allow_tf32=True):
                exact = self._by_torch({name: one.to(kind) for name, one in self._whole.items()}, kind)
            # Transform algorithms for fp32 convolutions are off by less than one half.
            self._expected[kind] = exact.round().to(self._out.dtype) if kind == torch.float32 else exact
        return self._expected[kind]

    def _by_torch(self, given: Mapping[str, torch.Tensor], kind: torch.dtype) -> torch.Tensor:
        p = self.problem
        dims = len(p.sizes)
        first = {name: one.movedim(-1, 1) for name, one in given.items()}
        along = (list(p.stride), list(p.pad_left), list(p.dilation))
        if p.direction == "forward":
            convolve = torch.nn.functional.conv3d if dims == 3 else torch.nn.functional.conv2d
            return convolve(first["x"], first["w"], None, *along, p.groups).movedim(1, -1)
        # torch reads only the extents of the operand whose gradient it computes.
        shape = {"x": p.x_shape, "w": p.w_shape}[self._written]
        first[self._written] = torch.empty(shape, device=self.device, dtype=kind).movedim(-1, 1)
        back = (*along, False, [0] * dims, p.groups)
        mask = [self._written == "x", self._written == "w", False]
        gradients = torch.ops.aten.convolution_backward(first["y"], first["x"], first["w"], None, *back, mask)
        gradient: torch.Tensor = gradients[0 if self._written == "x" else 1]
        return gradient.movedim(1, -1)

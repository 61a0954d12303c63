"""Attention for collect.py: operands on the GPU, with some rows of the results compared in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from collecting import Workspace
from timing import COLD_BYTES, MOST_SETS, Call

from kernelwright.dispatch import OperationPlan
from kernelwright.dispatch.operations.attention.operand import Wanted, wanted
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.operations.attention.comparing import Comparison, Sample, Where
from kernelwright.tile_engine.operations.attention.exact import Array, Result
from kernelwright.tile_engine.operations.attention.operands import names_of, shape_of
from kernelwright.tile_engine.operations.attention.requests import lengths_of, problem_of
from kernelwright.tile_engine.registry import measurable

_UNITS = 132  # compute units of an H200
_MOST_BLOCKS = 2200  # of queries, heads and splits: no more splits than fill a GPU many times
_MOST_SPLITS = 1536  # offered by the dispatcher
_SAMPLE = Sample(pairs=2, heads=1, rows=32)  # the part that is compared
_STEPS = 4  # compared values are integers from -4 to 4, divided by 4
_TFLOPS, _GBYTES = 500.0, 4000.0
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "int32": torch.int32}


class PosedAttention:
    """See :class:`collecting.Case`. Forward with any cache, and gradients."""

    def __init__(self, record: Record, device: str = "cuda") -> None:
        """Draw normally distributed operands for timing, and multiples of 1/4 for comparison."""
        self._record, self.problem, rng = record, problem_of(record), np.random.default_rng(0)
        operation, needed = measurable("attention"), wanted(self.problem)
        reads, writes = names_of(self.problem)
        moved = operation.bytes_moved(record)
        self._count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / moved)))
        self.us = max(operation.flops(record) / _TFLOPS / 1e6, moved / _GBYTES / 1e3, 3.0)
        lengths = lengths_of(record, self.problem, rng)
        self.device = device
        same = {name: torch.from_numpy(array).to(device) for name, array in lengths.items()}
        self._sets: dict[str, torch.Tensor] = {}
        self._compared = dict(same)
        for name in (one for one in reads if one not in same):
            self._draw(name, needed[name])
        self._out = {
            name: torch.empty(shape_of(needed[name]), device=device, dtype=_TYPES[needed[name].dtype])
            for name in writes
        }
        self._compared |= self._out
        held = {**self._compared, **({"page_table": lengths["page_table"]} if "page_table" in lengths else {})}
        self._comparison = Comparison(record, held, _TorchArrays(), _SAMPLE, rng)
        if "lse" in reads:
            self._comparison.set_lse()
            self._sets["lse"][:] = self._compared["lse"]
        fixed = {name: one.data_ptr() for name, one in {**same, **self._out}.items()}
        self._addresses = [
            {**fixed, **{name: one[at].data_ptr() for name, one in self._sets.items()}} for at in range(self._count)
        ]
        self._addresses.append({name: one.data_ptr() for name, one in self._compared.items()})
        self._expected: list[tuple[Result, Where]] = []

    def _draw(self, name: str, want: Wanted) -> None:
        """Draw an operand's timed sets and its compared set."""
        kind, shape = _TYPES[want.dtype], shape_of(want)
        if name == "bias" and want.shape is None:
            shape = 1, shape[2], shape[1], shape[3]  # heads before rows, one matrix for all requests
        elif name == "bias":
            slopes = 2.0 ** (-8 * (torch.arange(shape[-1], device=self.device) + 1) / shape[-1])
            self._compared[name] = slopes.to(kind).expand(shape).contiguous()
            self._sets[name] = self._compared[name].expand(self._count, *shape).contiguous()
            return
        self._sets[name] = torch.randn(self._count, *shape, device=self.device, dtype=kind)
        drawn = torch.randint(-_STEPS, _STEPS + 1, shape, device=self.device, dtype=torch.int8)
        self._compared[name] = (drawn.to(kind) / _STEPS).contiguous()

    def variants(self, spec: Mapping[str, Any]) -> Sequence[Any]:
        """Split kernels with the numbers of splits that the dispatcher offers, and those that fill units four times."""
        if spec["family"] != "fwd_splitkv" or self._record["direction"] != "forward":
            return [self.problem]
        record, tile = self._record, spec["tile"]
        rows = record["seqlen_q"] * record["nhead_q"] // record["nhead_k"]
        blocks = -(-rows // tile["m0"]) * record["batch"] * record["nhead_k"]
        most = max(1, min(-(-record["seqlen_k"] // tile["n0"]), _MOST_BLOCKS // blocks, _MOST_SPLITS))
        powers = [1 << log2 for log2 in range(_MOST_SPLITS.bit_length())]
        counts = {*powers, *(3 * one for one in powers), *(filled * _UNITS // blocks for filled in (1, 2, 4))}
        return [self.problem, *(replace(self.problem, num_splits=one) for one in sorted(counts) if 0 < one <= most)]

    def call(self, plan: OperationPlan[Any], workspace: Workspace) -> Call:
        """See :class:`collecting.Case`."""
        bind, on_gpu = measurable("attention").bind_addresses, self.device != "cpu"
        reads, writes = names_of(plan.problem)

        def call(number: int) -> None:
            named = self._addresses[number % self._count if number >= 0 else -1]
            stream = torch.cuda.current_stream().cuda_stream if on_gpu else 0
            inputs, outs = ([named[name] for name in names] for names in (reads, writes))
            bind(plan, inputs, outs, stream, workspace.address(plan))()

        return call

    def poison(self) -> None:
        """See :class:`collecting.Case`."""
        for out in self._out.values():
            out.fill_(math.nan)

    def wrong(self) -> str:
        """Check that every element is written, and that compared rows are within the engine's bounds."""
        if unwritten := [name for name, out in self._out.items() if torch.isnan(out).any()]:
            return f"elements of {unwritten[0]} are not written or NaN"
        if not self._expected:
            self._expected = list(self._comparison.expected())
        error = max(result.share(self._comparison.rows(where)) for result, where in self._expected)
        return "" if error <= 1 else f"an element is {error:.3g} times its error bound off"


class _TorchArrays:
    """See :class:`kernelwright.tile_engine.operations.attention.comparing.Arrays`."""

    def numbers(self, values: torch.Tensor) -> Array:
        return values.double().cpu().numpy()

    def put(self, values: Array, target: torch.Tensor) -> None:
        target.copy_(torch.from_numpy(values))

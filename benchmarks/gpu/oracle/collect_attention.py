"""Attention as collect.py poses it: operands on the GPU, some rows of the results compared in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from collecting import Workspace
from timing import COLD_BYTES, MOST_SETS, Call

from kernelwright.dispatch import OperationPlan
from kernelwright.dispatch.operations.attention.operand import Wanted, wanted
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.operations.attention.exact import (
    ROUNDOFF,
    Array,
    Head,
    Result,
    forward,
    gradients,
    rounded,
    visible_keys,
    weights,
)
from kernelwright.tile_engine.operations.attention.operands import names_of, shape_of
from kernelwright.tile_engine.operations.attention.requests import is_grouped, lengths_of, problem_of, requests_of
from kernelwright.tile_engine.registry import measurable

_UNITS = 132  # of an H200
_MOST_BLOCKS = 2200  # of queries, heads and splits: more splits than fill a GPU many times are not asked for
_MOST_SPLITS = 1536  # that the dispatcher offers
_ROWS, _PAIRS = 32, 2  # of each request and head, and how many requests and heads, are compared
_STEPS = 4  # compared values are whole numbers from -4 to 4, divided by 4
_TFLOPS, _GBYTES = 500.0, 4000.0
_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "int32": torch.int32}


class PosedAttention:
    """See :class:`collecting.Posed`. Forward with any cache, and gradients."""

    def __init__(self, record: Record, device: str = "cuda") -> None:
        """Timed operands are normally distributed, compared ones quarters."""
        self._record, self.problem = record, problem_of(record)
        self._requests, self._rng = requests_of(record), np.random.default_rng(0)
        operation, needed = measurable("attention"), wanted(self.problem)
        reads, writes = names_of(self.problem)
        moved = operation.bytes_moved(record)
        self._count = max(1, min(MOST_SETS, math.ceil(COLD_BYTES / moved)))
        self.us = max(operation.flops(record) / _TFLOPS / 1e6, moved / _GBYTES / 1e3, 3.0)
        self._lengths = lengths_of(record, self.problem, self._rng)
        self.device = device
        same = {name: torch.from_numpy(array).to(device) for name, array in self._lengths.items()}
        self._sets: dict[str, torch.Tensor] = {}
        self._compared = dict(same)
        for name in (one for one in reads if one not in same):
            self._draw(name, needed[name])
        self._out = {
            name: torch.empty(shape_of(needed[name]), device=device, dtype=_TYPES[needed[name].dtype])
            for name in writes
        }
        self._compared |= self._out
        if "lse" in reads:
            self._set_lse()
        fixed = {name: one.data_ptr() for name, one in {**same, **self._out}.items()}
        self._addresses = [
            {**fixed, **{name: one[at].data_ptr() for name, one in self._sets.items()}} for at in range(self._count)
        ]
        self._addresses.append({name: one.data_ptr() for name, one in self._compared.items()})
        self._expected: list[tuple[Callable[[], Array], Result]] = []

    def _draw(self, name: str, want: Wanted) -> None:
        """Timed sets and the compared one of an operand."""
        kind, shape = _TYPES[want.dtype], shape_of(want)
        if name == "bias" and want.shape is None:
            shape = 1, shape[2], shape[1], shape[3]  # heads outside of rows, one matrix for all requests
        elif name == "bias":
            slopes = 2.0 ** (-8 * (torch.arange(shape[-1], device=self.device) + 1) / shape[-1])
            self._compared[name] = slopes.to(kind).expand(shape).contiguous()
            self._sets[name] = self._compared[name].expand(self._count, *shape).contiguous()
            return
        self._sets[name] = torch.randn(self._count, *shape, device=self.device, dtype=kind)
        drawn = torch.randint(-_STEPS, _STEPS + 1, shape, device=self.device, dtype=torch.int8)
        self._compared[name] = (drawn.to(kind) / _STEPS).contiguous()

    def _set_lse(self) -> None:
        """The logarithm of how many keys a row sees: near the exact one, since scores are small."""
        for request in range(self._record["batch"]):
            seen = visible_keys(self._record, self._places(request))
            with np.errstate(divide="ignore"):
                rows = torch.from_numpy(np.log(seen)).to(self.device)
            for head in range(self._record["nhead_q"]):
                self._lse(request, head)[:] = rows
        self._sets["lse"][:] = self._compared["lse"]

    def variants(self, spec: Mapping[str, Any]) -> Sequence[Any]:
        """Kernels of splits with the numbers of them that the dispatcher offers, and what fills units four times."""
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
        """See :class:`collecting.Posed`."""
        bind, on_gpu = measurable("attention").bind_addresses, self.device != "cpu"
        reads, writes = names_of(plan.problem)

        def call(number: int) -> None:
            named = self._addresses[number % self._count if number >= 0 else -1]
            stream = torch.cuda.current_stream().cuda_stream if on_gpu else 0
            inputs, outs = ([named[name] for name in names] for names in (reads, writes))
            bind(plan, inputs, outs, stream, workspace.address(plan))()

        return call

    def poison(self) -> None:
        """See :class:`collecting.Posed`."""
        for out in self._out.values():
            out.fill_(math.nan)

    def wrong(self) -> str:
        """Every element must be written, and compared rows within the engine's bounds."""
        if unwritten := [name for name, out in self._out.items() if torch.isnan(out).any()]:
            return f"elements of {unwritten[0]} are not written or NaN"
        if not self._expected:
            made = self._forward() if self._record["direction"] == "forward" else self._backward()
            self._expected = list(made)
        error = max(result.share(found()) for found, result in self._expected)
        return "" if error <= 1 else f"an element is {error:.3g} times its error bound off"

    def _forward(self) -> Iterator[tuple[Callable[[], Array], Result]]:
        for request, head in self._pairs(self._record["nhead_q"]):
            one = self._head(request, head)
            rows = self._some(len(one.q))
            o, lse = forward(self._record, one.queries(rows))
            yield lambda at=(request, head), rows=rows: self._of("o", *at)[rows], o
            if "lse" in self._out:
                yield lambda at=(request, head), rows=rows: self._numbers(self._lse(*at))[rows], lse

    def _backward(self) -> Iterator[tuple[Callable[[], Array], Result]]:
        record, unit = self._record, ROUNDOFF[self._record["dtype"]]
        each = record["nhead_q"] // record["nhead_k"]
        for request, kv_head in self._pairs(record["nhead_k"]):
            keys = self._some(self._requests.keys[request])
            sums: dict[str, list[Result]] = {"dk": [], "dv": []}
            for head in range(kv_head * each, (kv_head + 1) * each):
                one, rows = self._head(request, head), self._some(self._requests.queries[request])
                do, o = self._of("do", request, head), self._of("o", request, head)
                lse = self._numbers(self._lse(request, head))
                some = one.queries(rows)
                dq = gradients(record, some, do[rows], weights(record, some, do[rows], o[rows], lse[rows]))["dq"]
                yield lambda at=(request, head), rows=rows: self._of("dq", *at)[rows], rounded([dq], unit)
                some = one.keys(keys)
                whole = gradients(record, some, do, weights(record, some, do, o, lse))
                for name, parts in sums.items():
                    parts.append(whole[name])
            for name, parts in sums.items():
                at = (name, request, kv_head)
                yield lambda at=at, keys=keys: self._of(*at)[keys], rounded(parts, unit)

    def _pairs(self, heads: int) -> list[tuple[int, int]]:
        """Requests and heads that are compared, none twice."""
        count = min(_PAIRS, self._record["batch"] * heads)
        chosen = self._rng.choice(self._record["batch"] * heads, count, replace=False)
        return [divmod(int(place), heads) for place in chosen]

    def _some(self, rows: int) -> Array:
        """Rows that are compared, in order, the last one among them."""
        taken = self._rng.choice(rows, min(rows, _ROWS), replace=False)
        return np.unique([*taken, rows - 1])

    def _places(self, request: int) -> Head:
        """A head without values: how many queries and keys there are, and where they stand."""
        queries, keys = self._requests.queries[request], self._requests.keys[request]
        last = self._record["mask"] != "top_left"  # ALiBi without a mask counts from the last key too
        places = np.arange(queries) + (keys - queries if last else 0)
        return Head(np.zeros((queries, 0)), np.zeros((keys, 0)), np.zeros((keys, 0)), places, np.arange(keys))

    def _head(self, request: int, head: int) -> Head:
        kv_head = head // (self._record["nhead_q"] // self._record["nhead_k"])
        bias, sinks = self._compared.get("bias"), self._compared.get("sinks")
        elementwise = self._record["bias"] == "elementwise"
        return replace(
            self._places(request),
            q=self._of("q", request, head), k=self._of("k", request, kv_head), v=self._of("v", request, kv_head),
            slope=float(bias.flatten()[head]) if bias is not None and not elementwise else 0.0,
            bias=self._numbers(bias[0, head]) if bias is not None and elementwise else None,
            sink=float(sinks[head]) if sinks is not None else None,
        )  # fmt: skip

    def _of(self, name: str, request: int, head: int) -> Array:
        """Rows of one head of one request in float64, in the order of their places."""
        array = self._compared[name]
        keys = name.removeprefix("d") in ("k", "v")
        lengths = self._requests.keys if keys else self._requests.queries
        count = lengths[request]
        if keys and "page_table" in self._compared:
            pages = self._compared["page_table"][request][: -(-count // self._record["page_size"])].long()
            return self._numbers(array[pages, :, head].flatten(0, 1)[:count])
        if not is_grouped(self._record):
            return self._numbers(array[request, :count, head])
        first = sum(lengths[:request])
        return self._numbers(array[0, first : first + count, head])

    def _lse(self, request: int, head: int) -> torch.Tensor:
        first = sum(self._requests.queries[:request])
        rows = slice(first, first + self._requests.queries[request])
        lse = self._compared["lse"]
        return lse[head, rows] if is_grouped(self._record) else lse[request, head]

    @staticmethod
    def _numbers(values: torch.Tensor) -> Array:
        return values.double().cpu().numpy()

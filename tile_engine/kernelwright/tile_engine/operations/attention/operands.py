"""Arrays of attention and of its gradients, and how far results are from the exact ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import AttentionProblem, dtypes
from kernelwright.dispatch.operations.attention.operand import NAMES, OUTPUTS, Wanted, wanted
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
from kernelwright.tile_engine.operations.attention.requests import is_grouped, lengths_of, problem_of, requests_of

_ALL_CHECKED = 1 << 28  # multiplications; of larger problems some heads and rows are compared
_HEADS, _ROWS = 4, 64  # how many
_KEPT = 1 << 24  # elements of exact results
_STEPS = 4  # values are whole numbers from -4 to 4, divided by 4

Where = tuple[str, int, int, Array]
"""An operand, a request, a head, and rows of it."""


def names_of(problem: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operands that launches of a problem read, and those that they write, in the order of launches."""
    kind = problem.direction if isinstance(problem, AttentionProblem) else "append"
    needed, written = wanted(problem), NAMES[kind][-OUTPUTS[kind] :]
    given = [name for name in NAMES[kind] if name in needed]
    return tuple(n for n in given if n not in written), tuple(n for n in given if n in written)


class AttentionOperands:
    """Operands of one problem by name. Results start poisoned."""

    def __init__(self, record: Record, seed: int) -> None:
        """Draw them; equal seeds give equal numbers."""
        self._record, self._rng = record, np.random.default_rng(seed)
        self._problem = problem_of(record)
        self._requests = requests_of(record)
        reads, writes = names_of(self._problem)
        needed = wanted(self._problem)
        lengths = lengths_of(record, self._problem, self._rng)
        self.named = {name: lengths[name] if name in lengths else self._drawn(name, needed[name]) for name in reads}
        for name in writes:
            self.named[name] = np.zeros(shape_of(needed[name]), dtypes.numpy_dtype(needed[name].dtype))
        if "lse" in reads:
            self._set_lse()
        self.inputs = tuple(self.named[name] for name in reads)
        self.outs = tuple(self.named[name] for name in writes)
        self._known: Sequence[tuple[Result, Where]] | None = None
        self.poison()

    def poison(self) -> None:
        """NaN."""
        for out in self.outs:
            out[...] = np.nan

    def error(self) -> float:
        """Of every element; of large problems, of some heads and rows, while every element must be written."""
        if any(np.isnan(out.astype(np.float32)).any() for out in self.outs):
            return float("inf")
        return max((result.share(self._rows(*where)) for result, where in self._expected()), default=0.0)

    def _expected(self) -> Iterable[tuple[Result, Where]]:
        """The exact results, which all kernels share unless they are many, and where they stand."""
        if self._known is not None:
            return self._known
        found = self._forward() if self._record["direction"] == "forward" else self._backward()
        if sum(out.size for out in self.outs) <= _KEPT or not self._small():
            self._known = list(found)
            return self._known
        return found

    def _rows(self, name: str, request: int, head: int, rows: Array) -> Array:
        array = self._lse(request, head) if name == "lse" else self._of(name, request, head)
        some: Array = array[rows]
        return some

    def _forward(self) -> Iterator[tuple[Result, Where]]:
        for request, kv_head in self._chosen():
            for head in self._heads(kv_head):
                one = self._head(request, head)
                rows = self._some(len(one.q))
                o, lse = forward(self._record, one.queries(rows))
                yield o, ("o", request, head, rows)
                if "lse" in self.named:
                    yield lse, ("lse", request, head, rows)

    def _backward(self) -> Iterator[tuple[Result, Where]]:
        record, unit = self._record, ROUNDOFF[self._record["dtype"]]
        for request, kv_head in self._chosen():
            keys = self._some(self._requests.keys[request])
            sums: dict[str, list[Result]] = {"dk": [], "dv": []}
            for head in self._heads(kv_head):
                one, rows = self._head(request, head), self._some(self._requests.queries[request])
                do, o = (self._of(name, request, head).astype(np.float64) for name in ("do", "o"))
                lse = self._lse(request, head).astype(np.float64)
                some = one.queries(rows)
                dq = gradients(record, some, do[rows], weights(record, some, do[rows], o[rows], lse[rows]))["dq"]
                yield rounded([dq], unit), ("dq", request, head, rows)
                some = one.keys(keys)
                whole = gradients(record, some, do, weights(record, some, do, o, lse))
                for name, parts in sums.items():
                    parts.append(whole[name])
            for name, parts in sums.items():
                yield rounded(parts, unit), (name, request, kv_head, keys)

    def _chosen(self) -> list[tuple[int, int]]:
        """Requests and heads of K that are compared."""
        every = [(request, head) for request in range(self._record["batch"]) for head in range(self._record["nhead_k"])]
        if self._small():
            return every
        return [every[place] for place in self._rng.choice(len(every), min(len(every), _HEADS), replace=False)]

    def _some(self, rows: int) -> Array:
        """Rows that are compared, in order."""
        if self._small():
            return np.arange(rows)
        return np.sort(self._rng.choice(rows, min(rows, _ROWS), replace=False))

    def _small(self) -> bool:
        return self._problem.flops <= 2 * _ALL_CHECKED

    def _heads(self, kv_head: int) -> range:
        """Heads of Q that share a head of K."""
        each = self._record["nhead_q"] // self._record["nhead_k"]
        return range(kv_head * each, (kv_head + 1) * each)

    def _head(self, request: int, head: int) -> Head:
        record = self._record
        kv_head = head // (record["nhead_q"] // record["nhead_k"])
        queries, keys = self._requests.queries[request], self._requests.keys[request]
        last = record["mask"] != "top_left"  # ALiBi without a mask counts from the last key too
        bias = self.named.get("bias")
        elementwise = record["bias"] == "elementwise"
        return Head(
            self._of("q", request, head).astype(np.float64),
            self._of("k", request, kv_head).astype(np.float64),
            self._of("v", request, kv_head).astype(np.float64),
            np.arange(queries) + (keys - queries if last else 0),
            np.arange(keys),
            slope=float(bias[head]) if bias is not None and not elementwise else 0.0,
            bias=bias[0, head].astype(np.float64) if bias is not None and elementwise else None,
            sink=float(self.named["sinks"][head]) if "sinks" in self.named else None,
        )

    def _of(self, name: str, request: int, head: int) -> Array:
        """Rows of one head of one request, in the order of their places; a view where there are no pages."""
        array: Array = self.named[name]
        keys = name.removeprefix("d") in ("k", "v")
        lengths = self._requests.keys if keys else self._requests.queries
        count = lengths[request]
        if keys and "page_table" in self.named:
            pages = self.named["page_table"][request][: -(-count // self._record["page_size"])]
            rows: Array = np.concatenate([array[page, :, head] for page in pages])[:count]
            return rows
        if not is_grouped(self._record):
            return array[request, :count, head]
        first = sum(lengths[:request])
        grouped: Array = array[0, first : first + count, head]
        return grouped

    def _lse(self, request: int, head: int) -> Array:
        lse = self.named["lse"]
        first = sum(self._requests.queries[:request])
        rows = slice(first, first + self._requests.queries[request])
        own: Array = lse[head, rows] if is_grouped(self._record) else lse[request, head]
        return own

    def _set_lse(self) -> None:
        """The logarithm of how many keys a row sees: near the exact one, since scores are small."""
        for request in range(self._record["batch"]):
            for head in range(self._record["nhead_q"]):
                with np.errstate(divide="ignore"):
                    self._lse(request, head)[:] = np.log(visible_keys(self._record, self._head(request, head)))

    def _drawn(self, name: str, want: Wanted) -> Array:
        kind = dtypes.numpy_dtype(want.dtype)
        if name == "bias" and want.shape is not None:  # slopes, as published: a geometric sequence
            return np.asarray(2.0 ** (-8 * (np.arange(want.shape[-1]) + 1) / want.shape[-1]), kind)
        shape = shape_of(want)
        if name == "bias":
            shape = 1, shape[2], shape[1], shape[3]  # heads outside of rows, one matrix for all requests
        drawn: Array = (self._rng.integers(-_STEPS, _STEPS + 1, shape, np.int8) / np.float32(_STEPS)).astype(kind)
        return drawn


def shape_of(want: Wanted) -> tuple[int, ...]:
    """Of a dense array; heads stand inside of rows, but not in an elementwise bias."""
    if want.shape is not None:
        return want.shape
    assert want.extents is not None
    requests, heads, rows, hdim = want.extents
    return requests, rows, heads, hdim

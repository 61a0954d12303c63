"""Compare results of attention with exact ones, for arrays of any library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

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
from kernelwright.tile_engine.operations.attention.requests import is_grouped, requests_of

Where = tuple[str, int, int, Array]
"""An operand, a request, a head, and some of its rows."""


class Arrays(Protocol):
    """Operations that an array library must provide besides slicing."""

    def numbers(self, values: Any) -> Array:
        """The values in float64, as a NumPy array."""

    def put(self, values: Array, target: Any) -> None:
        """Write values into an array of the same shape."""


class NumpyArrays:
    """Arrays of NumPy."""

    def numbers(self, values: Any) -> Array:
        """See :class:`Arrays`."""
        return np.asarray(values).astype(np.float64)

    def put(self, values: Array, target: Any) -> None:
        """See :class:`Arrays`."""
        target[...] = values


@dataclass(frozen=True)
class Sample:
    """How much of a problem is compared; None for everything.

    :ivar pairs: number of pairs of a request and a head of K and V.
    :ivar heads: for forward attention, number of the Q heads that share each.
    :ivar rows: number of rows of each.
    """

    pairs: int | None = None
    heads: int | None = None
    rows: int | None = None


class Comparison:
    """The operands of one problem by name, heads inside of rows, and its expected results."""

    def __init__(
        self, record: Record, named: Mapping[str, Any], arrays: Arrays, sample: Sample, rng: np.random.Generator
    ) -> None:
        """``named``: operands of the compared launches; a page table is a NumPy array."""
        self._record, self._named, self._arrays, self._sample, self._rng = record, named, arrays, sample, rng
        self._requests = requests_of(record)

    def expected(self) -> Iterator[tuple[Result, Where]]:
        """Exact results, and their places."""
        return self._forward() if self._record["direction"] == "forward" else self._backward()

    def rows(self, where: Where) -> Array:
        """The contents of a place."""
        name, request, head, rows = where
        array = self._lse(request, head) if name == "lse" else self._of(name, request, head)
        return self._arrays.numbers(array[rows])

    def set_lse(self) -> None:
        """Set LSE to the logarithm of the number of keys a row sees: close to the exact one, since scores are small."""
        for request in range(self._record["batch"]):
            with np.errstate(divide="ignore"):
                rows = np.log(visible_keys(self._record, self._places(request)))
            for head in range(self._record["nhead_q"]):
                self._arrays.put(rows, self._lse(request, head))

    def _forward(self) -> Iterator[tuple[Result, Where]]:
        for request, kv_head in self._chosen():
            for head in self._taken(self._heads(kv_head), self._sample.heads):
                one = self._head(request, int(head))
                rows = self._some(len(one.q))
                o, lse = forward(self._record, one.queries(rows))
                yield o, ("o", request, int(head), rows)
                if "lse" in self._named:
                    yield lse, ("lse", request, int(head), rows)

    def _backward(self) -> Iterator[tuple[Result, Where]]:
        record, unit = self._record, ROUNDOFF[self._record["dtype"]]
        for request, kv_head in self._chosen():
            keys = self._some(self._requests.keys[request])
            sums: dict[str, list[Result]] = {"dk": [], "dv": []}
            for head in self._heads(kv_head):
                one, rows = self._head(request, head), self._some(self._requests.queries[request])
                do, o = (self._numbers(name, request, head) for name in ("do", "o"))
                lse = self._arrays.numbers(self._lse(request, head))
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
        """Requests and heads of K to compare."""
        heads = self._record["nhead_k"]
        every = np.arange(self._record["batch"] * heads)
        return [divmod(int(place), heads) for place in self._taken(every, self._sample.pairs)]

    def _some(self, rows: int) -> Array:
        """Rows to compare, in order, including the last one."""
        if self._sample.rows is None:
            return np.arange(rows)
        return np.unique([*self._taken(np.arange(rows), self._sample.rows), rows - 1])

    def _taken(self, every: Any, count: int | None) -> Any:
        if count is None or count >= len(every):
            return every
        return self._rng.choice(np.asarray(every), count, replace=False)

    def _heads(self, kv_head: int) -> range:
        """Heads of Q that share a head of K."""
        each = self._record["nhead_q"] // self._record["nhead_k"]
        return range(kv_head * each, (kv_head + 1) * each)

    def _places(self, request: int) -> Head:
        """A head without values: the numbers of queries and keys, and their positions."""
        queries, keys = self._requests.queries[request], self._requests.keys[request]
        last = self._record["mask"] != "top_left"  # ALiBi without a mask counts from the last key too
        places = np.arange(queries) + (keys - queries if last else 0)
        return Head(np.zeros((queries, 0)), np.zeros((keys, 0)), np.zeros((keys, 0)), places, np.arange(keys))

    def _head(self, request: int, head: int) -> Head:
        kv_head = head // (self._record["nhead_q"] // self._record["nhead_k"])
        bias, sinks = self._named.get("bias"), self._named.get("sinks")
        elementwise = self._record["bias"] == "elementwise"
        return replace(
            self._places(request),
            q=self._numbers("q", request, head),
            k=self._numbers("k", request, kv_head),
            v=self._numbers("v", request, kv_head),
            slope=float(bias.reshape(-1)[head]) if bias is not None and not elementwise else 0.0,
            bias=self._arrays.numbers(bias[0, head]) if bias is not None and elementwise else None,
            sink=float(sinks[head]) if sinks is not None else None,
        )

    def _numbers(self, name: str, request: int, head: int) -> Array:
        return self._arrays.numbers(self._of(name, request, head))

    def _of(self, name: str, request: int, head: int) -> Any:
        """Rows of one head of one request, by position; a view if there are no pages."""
        array, keys = self._named[name], name.removeprefix("d") in ("k", "v")
        lengths = self._requests.keys if keys else self._requests.queries
        count = lengths[request]
        if keys and "page_table" in self._named:
            pages = self._named["page_table"][request][: -(-count // self._record["page_size"])]
            held = array[pages.astype(np.int64), :, head]
            return held.reshape(-1, held.shape[-1])[:count]
        if not is_grouped(self._record):
            return array[request, :count, head]
        first = sum(lengths[:request])
        return array[0, first : first + count, head]

    def _lse(self, request: int, head: int) -> Any:
        first = sum(self._requests.queries[:request])
        rows = slice(first, first + self._requests.queries[request])
        return self._named["lse"][head, rows] if is_grouped(self._record) else self._named["lse"][request, head]

"""Keys and values in pages: a cache with shuffled pages and NaN wherever no key is, in both forms of page tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from attention_abi import Strides
from attention_cases import Case, Operands, split
from places import DEVICE

BLOCK, LIST = 1, 2


@dataclass
class Pages:
    """Caches of K and V; `table` is a rectangle (BLOCK) or a list (LIST) of page numbers."""

    k: torch.Tensor
    v: torch.Tensor
    form: int
    size: int
    heads_first: bool
    table: torch.Tensor
    indptr: torch.Tensor
    last: torch.Tensor
    lengths: torch.Tensor

    def pose(self, problem: Any, args: Any) -> None:
        """Say in the problem and the arguments that K and V are here."""
        problem.page_table, problem.page_size, problem.pages = self.form, self.size, self.k.shape[0]
        problem.kv_lengths = int(self.form == BLOCK)
        problem.total_k = 0
        problem.page_table_stride = self.table.shape[1] if self.form == BLOCK else 0
        for name, cache in (("k", self.k), ("v", self.v)):
            head, row = (1, 2) if self.heads_first else (2, 1)
            setattr(problem, name, Strides(cache.stride(0), cache.stride(head), cache.stride(row)))
            setattr(args, name, cache.data_ptr())
        args.page_table, args.cu_seqlens_k = self.table.data_ptr(), None
        if self.form == BLOCK:
            args.seqlens_k = self.lengths.data_ptr()
        else:
            args.seqlens_k = None
            args.page_indptr, args.last_page_lengths = self.indptr.data_ptr(), self.last.data_ptr()


def paged(case: Case, x: Operands, form: int, size: int, heads_first: bool, seed: int = 0) -> Pages:
    """The keys and values of ``x`` in pages of ``size`` rows."""
    random = torch.Generator().manual_seed(seed)
    lengths = list(case.counts or case.keys)
    counts = [-(-length // size) for length in lengths]
    total = sum(counts) + 3
    order = torch.randperm(total, generator=random).tolist()
    caches = []
    for tensor in (x.k, x.v):
        heads, hdim = tensor.shape[-2] if case.group or not case.heads_first else tensor.shape[1], tensor.shape[-1]
        cache = torch.full((total, size, heads, hdim), math.nan, device=DEVICE, dtype=tensor.dtype)
        page = 0
        for request, length in enumerate(lengths):
            rows = split(case, x, tensor, request, True)
            for first in range(0, length, size):
                part = rows[first : min(first + size, length)]
                cache[order[page], : len(part)] = part
                page += 1
        caches.append(cache.transpose(1, 2).contiguous() if heads_first else cache)
    starts = [sum(counts[:i]) for i in range(len(counts) + 1)]
    if form == LIST:
        table = torch.tensor(order[: starts[-1]] or [0], device=DEVICE, dtype=torch.int32)
    else:
        table = torch.full((len(counts), max(*counts, 1) + 1), 1 << 30, device=DEVICE, dtype=torch.int32)
        for request, count in enumerate(counts):
            mine = order[starts[request] : starts[request] + count]
            table[request, :count] = torch.tensor(mine, device=DEVICE, dtype=torch.int32)
    last = [length - (count - 1) * size if count else 1 for length, count in zip(lengths, counts, strict=True)]
    numbers = [torch.tensor(one, device=DEVICE, dtype=torch.int32) for one in (starts, last, lengths)]
    return Pages(*caches, form, size, heads_first, table, *numbers)

"""Problems of appending keys to a cache: what to write, independent of the kernel that writes it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import ProblemError
from kernelwright.dispatch.operations.attention.shapes import Extents, read_strides
from kernelwright.problems.attention import structs
from kernelwright.problems.reading import shown
from kernelwright.problems.scalars import integer

_WORDS = {"rope": structs.ROPES, "page_table": structs.PAGE_TABLES[:2], "page_layout": structs.PAGE_LAYOUTS}
_COUNTS = (
    *("batch", "heads_q", "heads_kv", "hdim_q", "hdim_v", "seqlen_q", "seqlen_new", "capacity"),
    *("pages", "page_size", "page_table_stride", "rotary_dim", "rotary_places"),
)
_TENSORS = ("q", "q_out", "k", "v", "k_cache", "v_cache")


@dataclass(frozen=True, repr=False)
class AppendProblem:
    """New rows of K and V behind those that a cache holds, with rotary embedding of K, and of Q, if asked for.

    Row j of request b comes to stand at place ``seqlens_k[b] + j``, which is also its angle. All requests append the
    same number of rows.

    :ivar batch: requests.
    :ivar heads_kv: heads of K and V.
    :ivar seqlen_new: new rows of each request.
    :ivar hdim_q: head dimension of K (and Q); ``hdim_v`` of V, by default the same.
    :ivar capacity: rows of each request that the cache has room for.
    :ivar dtype: element type of everything but cos and sin, whose type is ``dtype_rotary`` (by default the same).
    :ivar rope: ``"none"``, ``"interleaved"`` (neighbours turn together) or ``"half"`` (elements rotary_dim / 2 apart).
    :ivar rotary_dim: how many elements of each row are turned; ``rotary_places`` rows of cos and sin there are.
    :ivar heads_q: heads of Q where it is rotated too, else 0; ``seqlen_q`` its rows.
    :ivar page_table: ``"none"`` or ``"block"``, with ``pages``, ``page_size``, ``page_table_stride`` and
        ``page_layout`` as in :class:`AttentionProblem`.
    :ivar layout: order of dense tensors whose strides are not given: ``"bshd"`` or ``"bhsd"``.
    :raises ProblemError: for an illegal number, word, dtype or stride.
    """

    batch: int
    heads_kv: int
    seqlen_new: int
    hdim_q: int
    capacity: int
    hdim_v: int | None = None
    dtype: str = "fp16"
    dtype_rotary: str = ""
    rope: str = "none"
    rotary_dim: int = 0
    rotary_places: int = 0
    heads_q: int = 0
    seqlen_q: int = 0
    page_table: str = "none"
    page_layout: str = "linear"
    pages: int = 0
    page_size: int = 0
    page_table_stride: int = 0
    q_strides: Sequence[int] | None = None
    q_out_strides: Sequence[int] | None = None
    k_strides: Sequence[int] | None = None
    v_strides: Sequence[int] | None = None
    k_cache_strides: Sequence[int] | None = None
    v_cache_strides: Sequence[int] | None = None
    layout: str = field(default="bshd", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Fill in what follows from the other fields, then check everything."""
        for name, allowed in _WORDS.items():
            if getattr(self, name) not in allowed:
                raise ProblemError(f"{name} is {getattr(self, name)!r}; allowed: {', '.join(allowed)}")
        dtypes.check("dtype", self.dtype)
        rotary = dtypes.check("dtype_rotary", self.dtype_rotary or self.dtype) if self.rope != "none" else ""
        object.__setattr__(self, "dtype_rotary", rotary)
        if self.hdim_v is None:
            object.__setattr__(self, "hdim_v", self.hdim_q)
        for name in _COUNTS:
            object.__setattr__(self, name, integer(name, getattr(self, name), 0, 2**57))
        for tensor in _TENSORS:
            name = f"{tensor}_strides"
            object.__setattr__(self, name, read_strides(name, getattr(self, name), self.strided(tensor), self.layout))
        struct = self.native()
        native.check(native.library().kw_problem_validate(native.byref(struct)))
        object.__setattr__(self, "_hash", hash(tuple(getattr(self, one.name) for one in fields(self) if one.compare)))

    def __hash__(self) -> int:
        """The hash of every field."""
        found: int = self.__dict__["_hash"]
        return found

    def extents(self, name: str) -> Extents:
        """Requests (or pages), heads, rows and head dimension of a tensor."""
        assert self.hdim_v is not None
        hdim = self.hdim_v if name.startswith("v") else self.hdim_q
        if name in ("q", "q_out"):
            return Extents(self.batch, self.heads_q, self.seqlen_q, hdim)
        if name in ("k", "v"):
            return Extents(self.batch, self.heads_kv, self.seqlen_new, hdim)
        if self.page_table == "none":
            return Extents(self.batch, self.heads_kv, self.capacity, hdim)
        return Extents(self.pages, self.heads_kv, self.page_size, hdim)

    def strided(self, name: str) -> Extents:
        """:meth:`extents` as strides lead through the tensor: the rows of a vectorized page belong to one piece."""
        found = self.extents(name)
        if name.endswith("cache") and self.page_layout == "vectorized":
            return found._replace(rows=1, hdim=found.rows * found.hdim)
        return found

    @property
    def flops(self) -> int:
        """Multiplications and additions of the rotary embedding: six for each pair of elements."""
        rows = self.heads_kv * self.seqlen_new + self.heads_q * self.seqlen_q
        return 3 * self.batch * rows * self.rotary_dim

    def span(self, name: str) -> int:
        """Bytes from the first to behind the last element of a tensor, gaps included."""
        return self.strided(name).span(getattr(self, f"{name}_strides")) * dtypes.ITEMSIZE[self.dtype]

    def native(self) -> structs.AppendProblem:
        """The C struct of this problem."""
        made = structs.AppendProblem(ctypes.sizeof(structs.AppendProblem), structs.APPEND, structs.VERSION)
        for name, words in _WORDS.items():
            setattr(made, name, words.index(getattr(self, name)))
        for name in _COUNTS:
            setattr(made, name, getattr(self, name))
        made.dtype, made.dtype_rotary = dtypes.CODES[self.dtype], dtypes.CODES.get(self.dtype_rotary, 0)
        made.rotates_q = self.heads_q > 0
        for name in _TENSORS:
            setattr(made, name, structs.AttentionStrides(*getattr(self, f"{name}_strides")))
        return made

    @classmethod
    def from_native(cls, address: int) -> AppendProblem:
        """The problem of the C struct at an address."""
        p = structs.AppendProblem.from_address(address)
        read: dict[str, Any] = {name: getattr(p, name) for name in _COUNTS}
        read.update({name: words[getattr(p, name)] for name, words in _WORDS.items()})
        for name in _TENSORS:
            strides = getattr(p, name)
            read[f"{name}_strides"] = strides.request, strides.head, strides.row
        return cls(dtype=dtypes.NAMES[p.dtype], dtype_rotary=dtypes.NAMES.get(p.dtype_rotary, ""), **read)

    def __repr__(self) -> str:
        """The call that makes it, without fields that have their defaults."""
        return shown(self)

    def __str__(self) -> str:
        """E.g. ``attention append fp16 b2 heads 2 new 1 d64 rotary half 64``."""
        text = f"attention append {self.dtype} b{self.batch} heads {self.heads_kv} new {self.seqlen_new} d{self.hdim_q}"
        text += f" rotary {self.rope} {self.rotary_dim}" if self.rope != "none" else ""
        text += f" q{self.seqlen_q} of {self.heads_q} heads" if self.heads_q else ""
        return text + (f" pages of {self.page_size}" if self.page_table != "none" else "")

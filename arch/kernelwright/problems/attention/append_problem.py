"""Problems of appending keys to a cache: what to write, independent of the kernel that writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from kernelwright.problems.attention import structs
from kernelwright.problems.attention.description import APPEND_PROBLEM, MOST
from kernelwright.problems.attention.shapes import Extents, read_strides
from kernelwright.problems.base import BaseProblem
from kernelwright.problems.scalars import integer
from kernelwright.problems.shared import ITEM_BYTES, DType
from kernelwright.problems.structs import make, values

_TENSORS = ("q", "q_out", "k", "v", "k_cache", "v_cache")


@dataclass(frozen=True, repr=False)
class AppendProblem(BaseProblem):
    """New rows of K and V appended to those in a cache, optionally with rotary embedding of K and Q.

    Row j of request b is written to position ``seqlens_k[b] + j``, which is also its rotary position. All requests
    append the same number of rows.

    :ivar batch: requests.
    :ivar heads_kv: heads of K and V.
    :ivar seqlen_new: new rows of each request.
    :ivar hdim_q: head dimension of K (and Q); ``hdim_v`` of V, by default the same.
    :ivar capacity: rows of each request that the cache has room for.
    :ivar dtype: element type of everything but cos and sin, whose type is ``dtype_rotary`` (by default the same).
    :ivar rope: ``"none"``, ``"interleaved"`` (neighbours form a pair) or ``"half"`` (elements rotary_dim / 2 apart do).
    :ivar rotary_dim: elements of each row that are rotated; ``rotary_places`` is the number of rows of cos and sin.
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
        """Fill in what follows from the other fields, then check each field; C checks what they say together."""
        if self.hdim_v is None:
            self._set("hdim_v", self.hdim_q)
        self._set("dtype_rotary", (self.dtype_rotary or self.dtype) if self.rope != "none" else "")
        if self.dtype_rotary:
            self._choose("dtype_rotary", DType.codes)
        for name, c_name in _FIELDS.items():
            member = APPEND_PROBLEM.members[c_name]
            if member.enum is not None:
                self._choose(name, [word for word, code in member.enum.codes.items() if code <= member.most])
            elif not name.endswith("_strides"):
                self._set(name, integer(name, getattr(self, name), member.field.least or 0, MOST))
        for tensor in _TENSORS:
            name = f"{tensor}_strides"
            self._set(name, read_strides(name, getattr(self, name), self.strided(tensor), self.layout))
        self._keep_hash()

    __hash__ = BaseProblem.__hash__

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
        """Return :meth:`extents` as strides traverse the tensor: the rows of a vectorized page count as one row."""
        dims = self.extents(name)
        if name.endswith("cache") and self.page_layout == "vectorized":
            return dims._replace(rows=1, hdim=dims.rows * dims.hdim)
        return dims

    @property
    def flops(self) -> int:
        """Multiplications and additions of the rotary embedding: six for each pair of elements."""
        rows = self.heads_kv * self.seqlen_new + self.heads_q * self.seqlen_q
        return 3 * self.batch * rows * self.rotary_dim

    @property
    def elements(self) -> int:
        """Elements that are written: new rows, and queries that are rotated."""
        assert self.hdim_v is not None
        new = self.heads_kv * self.seqlen_new * (self.hdim_q + self.hdim_v)
        return self.batch * (new + self.heads_q * self.seqlen_q * self.hdim_q)

    def span(self, name: str) -> int:
        """Return the bytes from the first element to behind the last one, gaps included."""
        return self.strided(name).span(getattr(self, f"{name}_strides")) * ITEM_BYTES[self.dtype]

    def in_c(self) -> dict[str, Any]:
        """Return the members of the C struct: words, numbers and strides, None for a type that the problem lacks."""
        given = {c_name: getattr(self, name) for name, c_name in _FIELDS.items()}
        rotary = DType(self.dtype_rotary) if self.dtype_rotary else None
        return given | {"dtype_rotary": rotary, "rotates_q": self.heads_q > 0}

    def native(self) -> structs.AppendProblem:
        """The C struct of this problem."""
        given = self.in_c() | {"version": structs.VERSION, "dtype_rotary": DType.codes.get(self.dtype_rotary, 0)}
        return make(structs.AppendProblem, APPEND_PROBLEM, structs.APPEND, given)

    @classmethod
    def from_native(cls, address: int) -> Self:
        """Read the problem from the C struct at an address."""
        struct = structs.AppendProblem.from_address(address)
        read = values(struct, APPEND_PROBLEM)
        given = {name: read[c_name] for name, c_name in _FIELDS.items()}
        return cls(**given, dtype_rotary=DType.names.get(struct.dtype_rotary, ""))

    def __str__(self) -> str:
        """E.g. ``attention append fp16 b2 heads 2 new 1 d64 rotary half 64``."""
        text = f"attention append {self.dtype} b{self.batch} heads {self.heads_kv} new {self.seqlen_new} d{self.hdim_q}"
        text += f" rotary {self.rope} {self.rotary_dim}" if self.rope != "none" else ""
        text += f" q{self.seqlen_q} of {self.heads_q} heads" if self.heads_q else ""
        return text + (f" pages of {self.page_size}" if self.page_table != "none" else "")


_FIELDS = {
    one.name: c_name
    for one in fields(AppendProblem)
    if (c_name := one.name.removesuffix("_strides")) in APPEND_PROBLEM.members and one.name != "dtype_rotary"
}
"""Names in the C struct of the fields that it has; a rotary embedding's type is apart, since there may be none."""

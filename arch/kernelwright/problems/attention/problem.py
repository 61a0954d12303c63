"""Attention problems: what to compute, independent of the kernels that compute it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from kernelwright.problems.attention import structs
from kernelwright.problems.attention.description import MOST, PROBLEM
from kernelwright.problems.attention.pairs import visible_pairs
from kernelwright.problems.attention.shapes import Extents, Strides, read_strides
from kernelwright.problems.base import BaseProblem
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.literals import AttentionLayout, AttentionMask, QScale
from kernelwright.problems.scalars import integer, real
from kernelwright.problems.shared import ITEM_BYTES, RESULT, DType
from kernelwright.problems.structs import make, values

TENSORS = ("q", "k", "v", "o", "bias", "do", "dq", "dk", "dv", "dbias")
"""Operands that have strides."""
_BACKWARD = ("do", "dq", "dk", "dv")
_OTHERWISE = {
    "dtype": "dtype_q",
    "seqlen_q": "max_seqlen_q",
    "seqlen_k": "max_seqlen_k",
    "do_strides": "d_o",
    **{f"{name}_strides": name for name in ("q", "k", "v", "o", "dq", "dk", "dv")},
}
"""Fields that have another name in C."""


@dataclass(frozen=True, repr=False)
class AttentionProblem(BaseProblem):
    """O = softmax(scale * Q·Kᵀ, capped, + bias, masked)·V for several requests, or its gradients.

    Head h of Q attends to head h // (heads_q / heads_kv) of K and V. Strides lead from one request, head and row to the
    next, in elements; head dimensions are contiguous. Rows that see no key have O = 0 and LSE = -inf.

    :ivar direction: ``"forward"`` (O, and LSE), or ``"backward"`` (dQ, dK, dV and dbias).
    :ivar batch: requests.
    :ivar heads_q: heads of Q and O, a multiple of ``heads_kv``, those of K and V.
    :ivar seqlen_q: queries of each request, in group mode of the longest; ``seqlen_k`` keys likewise.
    :ivar hdim_q: head dimension of Q and K; ``hdim_v`` of V and O, by default the same.
    :ivar dtype: element type of Q; ``dtype_kv`` of K and V and ``dtype_o`` of O are by default the same, but fp16
        results for 8-bit operands. ``dtype_bias`` of an elementwise bias is by default that of O.
    :ivar group: whether requests have lengths of their own: the rows of all requests are packed one after another,
        ``total_q`` of Q and ``total_k`` of K (0 with pages), and launches get ``cu_seqlens_q`` and ``cu_seqlens_k``.
    :ivar kv_lengths: whether launches get the number of keys of each request, ``seqlens_k``.
    :ivar mask: ``"none"``, ``"top_left"`` (query i is aligned with key i) or ``"bottom_right"`` (the last query is
        aligned with the last key).
    :ivar window: with a mask: the number of keys to the left and right of its position that a query sees, -1 for all;
        by default (-1, 0), a causal mask.
    :ivar bias: ``"none"``, ``"elementwise"`` (added to the scores, strides of 0 broadcast) or ``"alibi"`` (minus slope
        times distance; ``slopes_stride`` elements from one request's slopes to the next, 0 where all share them).
    :ivar scale: factor of Q·Kᵀ, by default 1/sqrt(hdim_q).
    :ivar soft_cap: scores become cap * tanh(score / cap); 0 is no cap.
    :ivar sink: whether each head has a score without a value that takes part in the sum.
    :ivar dropout_p: the share of probabilities that is dropped. ``random_bytes``: whether the bytes are stored.
    :ivar lse: forward: whether the logarithm of each row's sum of exponentials is stored, in fp32.
    :ivar min_seqlen_q: group mode: requests with fewer queries are left out, and their O stays; 0 for none.
    :ivar page_table: ``"none"``, ``"block"`` (vLLM: a row of ``page_table_stride`` pages for each request, with
        ``kv_lengths``) or ``"list"`` (SGLang: pages of all requests in one list, with offsets). K and V then are caches
        of ``pages`` pages of ``page_size`` keys, and strides of requests are those of pages.
    :ivar page_layout: ``"linear"``, or ``"vectorized"`` (16 bytes along the head dimension of K and the keys of V).
    :ivar qscale: factors of 8-bit operands: ``"none"``, ``"per_tensor"``, ``"block_scale"`` (one for ``scale_block_q``
        and ``scale_block_k`` rows) or ``"kv_block_scale"`` (one for each page and head).
    :ivar num_splits: forward: number of parts of the keys that are computed separately and combined; 1 for no split, 0
        (the default) lets the dispatcher choose.
    :ivar dbias: backward: whether the gradient of an elementwise bias is computed; ``deterministic``: whether all sums
        have a fixed order.
    :ivar layout: order of dense tensors whose strides are not given: ``"bshd"`` (request, row, head) or ``"bhsd"``.
    :raises ProblemError: for an illegal number, word, dtype or stride, or features that exclude each other.
    """

    direction: str
    batch: int
    heads_q: int
    heads_kv: int
    seqlen_q: int
    seqlen_k: int
    hdim_q: int
    hdim_v: int | None = None
    dtype: str = "fp16"
    dtype_kv: str = ""
    dtype_o: str = ""
    dtype_bias: str = ""
    group: bool = False
    total_q: int = 0
    total_k: int = 0
    kv_lengths: bool = False
    mask: AttentionMask = "none"
    window: tuple[int, int] | None = None
    bias: str = "none"
    slopes_stride: int = 0
    scale: float | None = None
    soft_cap: float = 0.0
    sink: bool = False
    dropout_p: float = 0.0
    random_bytes: bool = False
    lse: bool = False
    min_seqlen_q: int = 0
    page_table: str = "none"
    page_layout: str = "linear"
    pages: int = 0
    page_size: int = 0
    page_table_stride: int = 0
    qscale: QScale = "none"
    scale_block_q: int = 0
    scale_block_k: int = 0
    num_splits: int | None = None
    dbias: bool = False
    deterministic: bool = False
    q_strides: Sequence[int] | None = None
    k_strides: Sequence[int] | None = None
    v_strides: Sequence[int] | None = None
    o_strides: Sequence[int] | None = None
    bias_strides: Sequence[int] | None = None
    do_strides: Sequence[int] | None = None
    dq_strides: Sequence[int] | None = None
    dk_strides: Sequence[int] | None = None
    dv_strides: Sequence[int] | None = None
    dbias_strides: Sequence[int] | None = None
    layout: AttentionLayout = field(default="bshd", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Fill in what follows from the other fields, then check each field; C checks what they say together."""
        self._choose("direction", structs.DIRECTIONS)
        self._choose("dtype", RESULT)
        self._fill_dtypes()
        if self.hdim_v is None:
            self._set("hdim_v", self.hdim_q)
        for name, codes in _WORDS.items():
            self._choose(name, codes)
        for name in _FLAGS:
            self._set(name, bool(getattr(self, name)))
        for name, least in _COUNTS.items():
            self._set(name, integer(name, getattr(self, name), least, MOST))
        if self.heads_q % self.heads_kv:
            raise ProblemError(f"heads_q is {self.heads_q}; allowed: a multiple of heads_kv = {self.heads_kv}")
        self._fill_scores()
        splits = (0 if self.direction == "forward" else 1) if self.num_splits is None else self.num_splits
        self._set("num_splits", integer("num_splits", splits, 0, 2**31 - 1))
        for tensor in TENSORS:
            self._set(f"{tensor}_strides", self._memory(tensor))
        self._keep_hash()

    __hash__ = BaseProblem.__hash__

    def _fill_dtypes(self) -> None:
        self._set("dtype_kv", self.dtype_kv or self.dtype)
        self._set("dtype_o", self.dtype_o or RESULT[self.dtype])
        if self.bias == "elementwise":
            self._set("dtype_bias", self.dtype_bias or self.dtype_o)
            self._choose("dtype_bias", DType.codes)
        elif self.dtype_bias:
            raise ProblemError(f"dtype_bias is {self.dtype_bias!r}; allowed without an elementwise bias: none")

    def _fill_scores(self) -> None:
        if self.mask == "none" and self.window not in (None, (-1, -1)):
            raise ProblemError(f"window is {self.window} without a mask; allowed: mask top_left or bottom_right")
        window = self.window or ((-1, -1) if self.mask == "none" else (-1, 0))
        if len(window) != 2:
            raise ProblemError(f"window is {window}; allowed: two numbers, keys on the left and on the right")
        self._set("window", tuple(integer("window", each, -1) for each in window))
        self._set("scale", 1 / math.sqrt(self.hdim_q) if self.scale is None else real("scale", self.scale))
        for name in ("soft_cap", "dropout_p"):
            self._set(name, real(name, getattr(self, name)))

    def _memory(self, tensor: str) -> Strides:
        name = f"{tensor}_strides"
        given = getattr(self, name)
        absent = (tensor in _BACKWARD and self.direction == "forward") or (
            (tensor == "bias" and self.bias != "elementwise") or (tensor == "dbias" and not self.dbias)
        )
        if absent:
            if given is not None and any(given):
                raise ProblemError(f"{name} is {tuple(given)}; allowed: this problem has no such tensor")
            return 0, 0, 0
        return read_strides(name, given, self.strided(tensor), "bhsd" if "bias" in tensor else self.layout)

    def extents(self, name: str) -> Extents:
        """Requests (or pages), heads, rows and the contiguous extent of q, k, v, o, bias, or a gradient of them."""
        name = name.removeprefix("d") if name != "do" else "o"
        requests, rows = (1, self.total_q) if self.group else (self.batch, self.seqlen_q)
        assert self.hdim_v is not None
        if name in ("q", "o", "bias"):
            inner = {"q": self.hdim_q, "o": self.hdim_v, "bias": self.seqlen_k}[name]
            return Extents(requests, self.heads_q, rows, inner)
        requests, rows = (1, self.total_k) if self.group else (self.batch, self.seqlen_k)
        if self.page_table != "none":
            requests, rows = self.pages, self.page_size
        return Extents(requests, self.heads_kv, rows, self.hdim_q if name == "k" else self.hdim_v)

    def strided(self, name: str) -> Extents:
        """Return :meth:`extents` as strides traverse the tensor: the rows of a vectorized page count as one row."""
        dims = self.extents(name)
        if name in ("k", "v") and self.page_layout == "vectorized":
            return dims._replace(rows=1, hdim=dims.rows * dims.hdim)
        return dims

    @property
    def rows(self) -> int:
        """Rows of LSE: requests x heads x queries."""
        return self.heads_q * (self.total_q if self.group else self.batch * self.seqlen_q)

    @property
    def lse_shape(self) -> tuple[int, ...]:
        """Requests, heads and queries; in group mode heads and all queries."""
        return (self.heads_q, self.total_q) if self.group else (self.batch, self.heads_q, self.seqlen_q)

    @property
    def flops(self) -> int:
        """Multiplications and additions for every query with every key that it sees.

        Forward has two products (Q·Kᵀ and P·V), backward five. In group mode, and where lengths are known on the device
        only, every request counts with the mean length, or with the longest one where there is no total.
        """
        queries, keys, requests = self.seqlen_q, self.seqlen_k, self.batch
        if self.group and requests:
            queries = self.total_q // requests
            keys = self.total_k // requests if self.total_k else keys
        assert self.window is not None and self.hdim_v is not None
        pairs = visible_pairs(queries, keys, self.window, self.mask == "bottom_right")
        wide = self.hdim_q + self.hdim_v if self.direction == "forward" else 3 * self.hdim_q + 2 * self.hdim_v
        return 2 * requests * self.heads_q * pairs * wide

    def span(self, name: str) -> int:
        """Return the bytes from the first element to behind the last one of a strided tensor, gaps included."""
        dtype = {"q": self.dtype, "dq": self.dtype, "o": self.dtype_o, "do": self.dtype_o}.get(name, self.dtype_kv)
        if name in ("bias", "dbias"):
            dtype = self.dtype_bias
        return self.strided(name).span(getattr(self, f"{name}_strides")) * ITEM_BYTES.get(dtype, 0)

    def in_c(self) -> dict[str, Any]:
        """Return the members of the C struct: words, numbers and strides, None for a type that the problem lacks."""
        given = {c_name: getattr(self, name) for name, c_name in _FIELDS.items()}
        window_left, window_right = self.window or (-1, -1)
        return given | {
            "dtype_bias": DType(self.dtype_bias) if self.dtype_bias else None,
            "dropout": self.dropout_p > 0,
            **{"window_left": window_left, "window_right": window_right},
        }

    def native(self) -> structs.AttentionProblem:
        """The C struct of this problem."""
        given = self.in_c() | {"version": structs.VERSION, "dtype_bias": DType.codes.get(self.dtype_bias, 0)}
        return make(structs.AttentionProblem, PROBLEM, structs.DIRECTIONS[self.direction], given)

    @classmethod
    def from_native(cls, address: int) -> Self:
        """Read the problem from the C struct at an address; a stage is read as the whole problem."""
        struct = structs.AttentionProblem.from_address(address)
        read = values(struct, PROBLEM)
        given = {name: read[c_name] for name, c_name in _FIELDS.items()}
        given |= {
            "dtype_bias": DType.names.get(struct.dtype_bias, ""),
            "window": (struct.window_left, struct.window_right),
        }
        directions = {**{code: name for name, code in structs.DIRECTIONS.items()}, **structs.STAGES}
        return cls(directions[struct.op], **given)

    def __str__(self) -> str:
        """E.g. ``attention forward fp16 b2 heads 8/2 q128 k256 d64 bottom_right``."""
        kind = f"attention {self.direction} {self.dtype}" + (f"/{self.dtype_kv}" if self.dtype_kv != self.dtype else "")
        text = f"{kind} b{self.batch} heads {self.heads_q}/{self.heads_kv} q{self.seqlen_q} k{self.seqlen_k}"
        text += f" d{self.hdim_q}" + (f"/{self.hdim_v}" if self.hdim_v != self.hdim_q else "")
        if self.mask != "none":
            text += f" {self.mask}" + (f" window {self.window}" if self.window != (-1, 0) else "")
        text += f" {self.bias} bias" if self.bias != "none" else ""
        text += f" pages of {self.page_size}" if self.page_table != "none" else ""
        flags = ("group", "sink", "lse", "dbias", "deterministic")
        return text + "".join(f" {name}" for name in flags if getattr(self, name))


_KINDS = {one.name: str(one.type) for one in fields(AttentionProblem)}
_FIELDS = {name: c_name for name in _KINDS if (c_name := _OTHERWISE.get(name, name)) in PROBLEM.members}
"""Names in the C struct of the fields that it has."""
_WORDS = {name: one.enum.codes for name, c_name in _FIELDS.items() if (one := PROBLEM.members[c_name]).enum}
_FLAGS = tuple(name for name in _FIELDS if _KINDS[name] == "bool")
_COUNTS = {
    name: PROBLEM.members[c_name].field.least or 0
    for name, c_name in _FIELDS.items()
    if _KINDS[name].startswith("int") and name != "num_splits"
}
"""The smallest legal numbers."""

"""Calls of every positional function, whose results are held to float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attention.compat.positional import PositionalClient
from attention.masks import FULL, TOP_LEFT, Window
from attention.philox import random_bytes
from attention.reference import Features, backward, forward

Array = np.ndarray[Any, np.dtype[Any]]
# Brings arrays to where a call reads and writes them, calls, and brings them back.
Call = Callable[..., None]

BATCH, HEADS, HEADS_K, QUERIES, KEYS = 2, 4, 2, 5, 32
SCALE = float(np.float32(0.4))
SINKS = np.zeros(HEADS)


class Checked:
    """One client with data of a dtype; ``call`` runs a function on named arrays."""

    def __init__(
        self, call: Call, dtype: Any = np.float32, hdim: tuple[int, int] = (16, 16), atol: float = 1e-5
    ) -> None:
        self.call, self.dtype, self.atol = call, np.dtype(dtype), atol
        self.hdim_q, self.hdim_v = hdim
        rng = np.random.default_rng(0)
        shapes = ((HEADS, QUERIES, hdim[0]), (HEADS_K, KEYS, hdim[0]), (HEADS_K, KEYS, hdim[1]))
        self.q, self.k, self.v = (rng.standard_normal((BATCH, *shape)).astype(self.dtype) for shape in shapes)

    def sizes(self) -> dict[str, Any]:
        names = {"float32": b"fp32", "float16": b"fp16", "bfloat16": b"bf16"}
        return {
            "batch": BATCH, "nhead_q": HEADS, "nhead_k": HEADS_K, "seqlen_q": QUERIES, "seqlen_k": KEYS,
            "hdim_q": self.hdim_q, "hdim_v": self.hdim_v, "scale": SCALE, "data_type": names[self.dtype.name],
        }  # fmt: skip

    def out(self, rows_first: bool = False) -> Array:
        shape = (BATCH, QUERIES, HEADS, self.hdim_v) if rows_first else (BATCH, HEADS, QUERIES, self.hdim_v)
        return np.full(shape, np.nan, self.dtype)

    def wanted(self, b: int, features: Features) -> Any:
        return forward(*(one[b].astype(np.float64) for one in (self.q, self.k, self.v)), features)

    def holds(self, o: Array, features: Features | list[Features]) -> None:
        """O as batch x heads x queries x hdim_v."""
        for b in range(BATCH):
            wanted = self.wanted(b, features[b] if isinstance(features, list) else features)
            np.testing.assert_allclose(o[b].astype(np.float64), wanted.o, atol=self.atol)

    def forward(self) -> None:
        data = {"q": self.q, "k": self.k, "v": self.v}
        rows = {name: np.ascontiguousarray(one.transpose(0, 2, 1, 3)) for name, one in data.items()}
        causal = {"mask_type": 2, "window_right": 0}
        for more, features in (
            ({}, Features(SCALE)),
            (causal, Features(SCALE, window=Window(-1, 0, True))),
            ({"mask_type": 1, "window_left": 2, "window_right": 3}, Features(SCALE, window=Window(2, 3))),
            ({"mask_type": 1}, Features(SCALE, window=FULL)),
        ):
            for perm, group in ((1, 0), (0, 0), (0, 1)):
                o, operands = self.out(not perm), data if perm else rows
                self.call("run_fwd", **self.sizes(), **more, **operands, o=o, perm=perm, is_group_mode=group)
                self.holds(o if perm else o.transpose(0, 2, 1, 3), features)

    def features(self, slopes: bool = True) -> None:
        """What functions fill in: zeros as a bias, as slopes (if kernels have them) and as sinks; dropout's pattern."""
        kept = random_bytes((BATCH, HEADS, QUERIES, KEYS), 1, 0) <= int(np.float32(0.8) * 255)
        keep = 1 - float(np.float32(0.2))
        dropped = [Features(SCALE, kept=one, keep=keep) for one in kept]
        assert not kept.all()
        for more, features in (
            ({"bias_type": 1}, Features(SCALE)), ({"bias_type": 2, "mask_type": 2}, Features(SCALE)),
            ({"has_lse": 1, "has_sink": 1}, Features(SCALE, sinks=SINKS)), ({"has_dropout": 1, "has_lse": 1}, dropped),
            ({"has_skip": 1, "traits_hdim_q": 256}, Features(SCALE)),
        ):  # fmt: skip
            if more.get("bias_type") == 2 and not slopes:
                continue
            o = self.out()
            self.call("run_fwd", **self.sizes(), **more, q=self.q, k=self.k, v=self.v, o=o)
            self.holds(o, features)  # type: ignore[arg-type]

    def backward(self) -> None:
        rng = np.random.default_rng(3)
        do = rng.standard_normal((BATCH, HEADS, QUERIES, self.hdim_v)).astype(self.dtype)
        for more, window in (({}, FULL), ({"mask_type": 1, "is_deterministic": 1}, TOP_LEFT)):
            features = Features(SCALE, window=window)
            done = [self.wanted(b, features) for b in range(BATCH)]
            o = np.stack([one.o for one in done]).astype(self.dtype)
            lse = np.stack([one.lse for one in done]).astype(np.float32)
            grads = {f"d{name}": np.full_like(getattr(self, name), np.nan) for name in "qkv"}
            operands = {"q": self.q, "k": self.k, "v": self.v, "o": o, "lse": lse, "do": do}
            self.call("run_bwd", **self.sizes(), **more, **operands, **grads)
            for b in range(BATCH):
                wanted = backward(*(one[b].astype(np.float64) for one in (self.q, self.k, self.v, do)), features)
                for name, gradient in grads.items():
                    close = {"atol": 3 * self.atol, "rtol": 3 * self.atol}
                    np.testing.assert_allclose(gradient[b].astype(np.float64), getattr(wanted, name), **close)

    def split(self) -> None:
        for more in ({"num_splits": 3}, {"num_splits": 0}, {"num_splits": 2, "paged_kv": 1}):
            o = self.out()
            k, v = (pages(one, 16) if "paged_kv" in more else one for one in (self.k, self.v))
            given = {"mask_type": 2, "window_left": 20, "window_right": 0, "has_lse": 1}
            self.call("run_splitkv", **self.sizes(), **more, **given, q=self.q, k=k, v=v, o=o)
            self.holds(o, Features(SCALE, window=Window(20, 0, True)))

    def paged(self) -> None:
        q, k, v = np.ascontiguousarray(self.q.transpose(0, 2, 1, 3)), pages(self.k, 16), pages(self.v, 16)
        for function, more in (
            ("run_pagedkv", {"has_lse": 1}), ("run_batch_prefill", {"kv_lookup": 0}),
            ("run_batch_prefill", {"kv_lookup": 1, "has_lse": 1}),
            ("run_splitkv", {"paged_kv": 1, "is_group_mode": 1, "perm": 0, "window_right": 0}),
        ):  # fmt: skip
            o = self.out(True)
            self.call(function, **self.sizes(), **more, q=q, k=k, v=v, o=o, mask_type=2, page_block_size=16)
            self.holds(o.transpose(0, 2, 1, 3), Features(SCALE, window=Window(-1, 0, True)))

    def append(self, **more: Any) -> None:
        new = {"knew": self.k, "vnew": self.v}
        sizes = {name: value for name, value in self.sizes().items() if name not in ("scale", "seqlen_k")}
        self.call("run_appendkv", **sizes, seqlen_knew=KEYS, q=self.q, **new, **more)


def pages(one: Array, size: int) -> Array:
    """Rows of each request cut into (pages, heads, size, hdim), request by request."""
    batch, heads, rows, hdim = one.shape
    cut = one.reshape(batch, heads, rows // size, size, hdim).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(cut.reshape(-1, heads, size, hdim))


def on_host(client: PositionalClient) -> Call:
    """Calls on the arrays themselves."""
    return lambda function, **given: client.run(function, **given)

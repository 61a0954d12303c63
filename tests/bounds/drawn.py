"""Random problems whose numbers reach to 2^62, as traces write them and as ``kernelwright.dispatch`` takes them.

As in ``problems.hpp``: a problem starts small, and a few of its numbers are replaced.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Fields = dict[str, Any]


class Numbers(random.Random):
    """Small and extreme numbers."""

    def wild(self, least: int = 0) -> int:
        """Near a power of two up to 2^62, most often near 2^31 and 2^32."""
        power = self.randrange(30, 34) if self.random() < 0.3 else self.randrange(63)
        return max(least, (1 << power) + self.randrange(-2, 3))

    def small(self, least: int = 0) -> int:
        """From the least on, seldom above 10."""
        return least + (self.randrange(300) if self.random() < 0.1 else self.randrange(9))

    def spoil(self, fields: Fields, names: Sequence[str], least: int = 0) -> None:
        """Replace up to three of the named numbers."""
        for name in self.choices(names, k=self.randrange(4)):
            fields[name] = self.wild(least)


def gemm(seed: int) -> Fields:
    """Fields of a GEMM."""
    r = Numbers(seed)
    step = r.choice((1, 8, 128))
    made: Fields = {"m": r.small() * step, "n": r.small() * step, "k": r.small() * step, "batch": r.small(1)}
    r.spoil(made, ("m", "n", "k", "batch"), r.randrange(2))
    made["batch"] = max(1, made["batch"]) if r.random() < 0.5 else 1
    made |= {"dtype": r.choice(("fp32", "fp16", "bf16", "int8")), "layout": r.choice(("rcr", "rrr", "ccr", "crr"))}
    made |= {"split_k": r.choice((0, 1, 4, 2**32 - 1)), "beta": r.choice((0.0, 1.0))}
    if r.random() < 0.3:
        made |= {"num_d": 1, "activation": "relu"}
    return made


def grouped(seed: int) -> Fields:
    """Fields of a grouped GEMM."""
    groups = [gemm(seed * 8 + index) for index in range(1 + seed % 4)]
    return {
        "groups": [(one["m"], one["n"], one["k"]) for one in groups],
        **{name: groups[0][name] for name in ("dtype", "layout", "beta")},
    }


def convolution(seed: int) -> Fields:
    """Fields of a convolution of any direction."""
    r = Numbers(seed)
    dims, step = r.randrange(1, 4), r.choice((1, 8, 64))
    counts: Fields = {"n": r.small(), "groups": r.small(1) if r.random() < 0.3 else 1, "c": r.small(1), "k": r.small(1)}
    r.spoil(counts, tuple(counts), 1)
    counts["c"], counts["k"] = counts["c"] * counts["groups"] * step, counts["k"] * counts["groups"] * step
    along: list[Fields] = []
    for _ in range(dims):
        one: Fields = {"filter": r.randrange(1, 5), "stride": r.randrange(1, 4), "dilation": r.randrange(1, 3)}
        one |= {"size": 8 + r.small(), "pad_left": r.randrange(3), "pad_right": r.randrange(3)}
        along.append(one)
    r.spoil(r.choice(along), ("filter", "stride", "dilation", "size", "pad_left", "pad_right"), 1)
    for one in along:
        if r.random() < 0.6:  # what a filter reaches lies in the image
            one["size"] = max(one["size"], one["dilation"] * (one["filter"] - 1) + 1)
    directions = ("forward", "backward_data", "backward_weight")
    words = {"direction": r.choice(directions), "dtype": r.choice(("fp32", "fp16", "bf16"))}
    return {**words, **counts, **{name: [one[name] for one in along] for name in along[0]}}


def attention(seed: int) -> Fields:
    """Fields of attention, forward or backward, with or without pages."""
    r = Numbers(seed)
    made: Fields = {"batch": r.small(), "heads_kv": r.small(1), "seqlen_q": r.small(), "seqlen_k": r.small()}
    r.spoil(made, tuple(made), r.randrange(2))
    made["heads_kv"] = max(1, made["heads_kv"])
    made |= {"direction": r.choice(("forward", "backward")), "heads_q": made["heads_kv"] * r.choice((1, 2, 8))}
    made |= {"hdim_q": r.choice((64, 128, 256)), "dtype": r.choice(("fp32", "fp16", "bf16"))}
    if r.random() < 0.1:
        made["hdim_q"] = r.wild(1)
    if r.random() < 0.5:
        made |= {"mask": r.choice(("top_left", "bottom_right"))}
        if r.random() < 0.5:
            made["window"] = [r.choice((-1, 0, r.wild())), r.choice((-1, 0, r.wild()))]
    if r.random() < 0.3:
        made |= {"bias": r.choice(("elementwise", "alibi"))}
    if made["direction"] == "forward":
        made |= {"lse": r.random() < 0.5, "num_splits": r.choice((0, 1, 3, 2**32 - 1))}
        if r.random() < 0.3:
            made |= {"page_table": "block", "kv_lengths": True, "pages": r.small(), "page_size": 16}
            r.spoil(made, ("pages", "page_size"), 1)
            made["page_table_stride"] = -(-made["seqlen_k"] // made["page_size"])
    if r.random() < 0.3:
        totals = {f"total_{name}": made["batch"] * made[f"seqlen_{name}"] for name in "qk"}
        made |= {"group": True, **totals} | ({"total_k": 0} if made.get("page_table") else {})
    return made


def append(seed: int) -> Fields:
    """Fields of new keys for a cache."""
    r = Numbers(seed)
    made: Fields = {"batch": r.small(), "heads_kv": r.small(1), "seqlen_new": r.small(), "capacity": 8 + r.small()}
    r.spoil(made, tuple(made), 1)
    made |= {"hdim_q": r.choice((64, 128)), "dtype": r.choice(("fp32", "fp16", "bf16"))}
    if r.random() < 0.5:
        made |= {"rope": r.choice(("interleaved", "half")), "rotary_dim": made["hdim_q"]}
        made["rotary_places"] = r.choice((made["capacity"], r.wild()))
    if r.random() < 0.5:
        made |= {"page_table": "block", "pages": r.small(1), "page_size": 16}
        r.spoil(made, ("pages", "page_size"), 1)
        made["page_table_stride"] = -(-made["capacity"] // made["page_size"])
    return made

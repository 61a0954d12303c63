"""A cache of K and V in pages: paged_cache.py [--library DIR].

Prefill of ragged prompts, then tokens one by one: append_kv() with rotary embedding, decode() over all keys. The result
is that of one causal attention over the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import by_numpy, causal, check, drawn, example_parser, open_library

from kernelwright.dispatch import Dispatcher

PAGE, HEADS, KV_HEADS, D, TOKENS = 16, 8, 2, 64, 6
PROMPTS = (37, 5)


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    """x (rows, heads, d) by the angles of its rows; elements that are d / 2 apart turn together."""
    a, b = np.split(x, 2, axis=-1)
    c, s = cos[:, None], sin[:, None]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


def main(arguments: list[str] | None = None) -> None:
    """Fill the cache step by step and compare every token with the whole sequence."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    rng, total = np.random.default_rng(0), [prompt + TOKENS for prompt in PROMPTS]
    width = -(-max(total) // PAGE)
    table = rng.permutation(len(PROMPTS) * width + 3)[: len(PROMPTS) * width].reshape(-1, width).astype(np.int32)
    # K and V of a page lie side by side; each is a view.
    pages = np.zeros((len(PROMPTS) * width + 3, 2, PAGE, KV_HEADS, D), np.float32)
    k_cache, v_cache = pages[:, 0], pages[:, 1]
    angles = np.arange(max(total))[:, None] * 10000.0 ** (-np.arange(D // 2) / (D // 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    sequences = [[drawn(b * 3 + i, n, h, D) for i, h in enumerate((HEADS, KV_HEADS, KV_HEADS))]
                 for b, n in enumerate(total)]  # fmt: skip
    wanted = [
        by_numpy(rotated(q, cos[: len(q)], sin[: len(q)]), rotated(k, cos[: len(k)], sin[: len(k)]), v,
                 added=causal(len(q), len(k)))
        for q, k, v in sequences
    ]  # fmt: skip

    held = np.zeros(len(PROMPTS), np.int32)
    for b, prompt in enumerate(PROMPTS):  # prompts have different lengths: one append for each
        q, k, v = (each[None, :prompt] for each in sequences[b])
        turned = dispatcher.append_kv(
            k, v, k_cache, v_cache, held[b : b + 1], q=q, cos=cos, sin=sin, page_table=table[b : b + 1]
        )
        sequences[b][0][:prompt] = turned[0]
    held += np.array(PROMPTS, np.int32)
    ragged = np.concatenate([sequences[b][0][:prompt] for b, prompt in enumerate(PROMPTS)])
    starts = np.array([0, *np.cumsum(PROMPTS)], np.int32)
    out = dispatcher.prefill(ragged, k_cache, v_cache, starts, max(PROMPTS), held, page_table=table)
    for b, prompt in enumerate(PROMPTS):
        check(out[starts[b] : starts[b + 1]], wanted[b][:prompt], f"prompt of {prompt} tokens")

    for step in range(TOKENS):
        q, k, v = (np.stack([sequences[b][i][held[b]] for b in range(len(PROMPTS))])[:, None] for i in range(3))
        q = dispatcher.append_kv(k, v, k_cache, v_cache, held, q=q, cos=cos, sin=sin, page_table=table)
        held += 1
        out = dispatcher.decode(q, k_cache, v_cache, held, page_table=table)
        for b in range(len(PROMPTS)):
            assert np.abs(out[b, 0] - wanted[b][held[b] - 1]).max() < 1e-4, f"token {step} of request {b}"

    # The same pages in one list, as SGLang keeps them; heads before rows in the caches; keys in two parts.
    counts = -(-held // PAGE)
    again = dispatcher.decode(
        q, k_cache.transpose(0, 2, 1, 3), v_cache.transpose(0, 2, 1, 3), cache_layout="bhsd", num_splits=2,
        page_table=np.concatenate([table[b, :count] for b, count in enumerate(counts)]),
        page_indptr=np.array([0, *np.cumsum(counts)], np.int32), last_page_lengths=(held - 1) % PAGE + 1,
        max_seqlen_k=int(held.max()),
    )  # fmt: skip
    check(again, out, "one list of pages")
    print(f"{TOKENS} tokens of {len(PROMPTS)} requests: as one causal attention over each sequence")


if __name__ == "__main__":
    main()

"""Q, K and V of 8 bits with factors: eight_bits.py [--library DIR].

A factor for each tensor, one for each block of rows, and one for each page of a cache.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from common import by_numpy, causal, check, drawn, example_parser, open_library

from kernelwright.dispatch import Dispatcher

LARGEST = 448.0  # of float8_e4m3fn


def quantised(values: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """8-bit numbers, and what they are to be multiplied by: along ``axes`` all have one factor."""
    factor = np.abs(values).max(axis=axes, keepdims=True) / LARGEST
    return (values / factor).astype(ml_dtypes.float8_e4m3fn), factor.astype(np.float32)


def main(arguments: list[str] | None = None) -> None:
    """Results of each kind of factors, compared with NumPy on the numbers that the operands stand for."""
    dispatcher = Dispatcher(open_library(example_parser(__doc__).parse_args(arguments)))
    wide = drawn(0, 1, 40, 4, 64), drawn(1, 1, 64, 2, 64), drawn(2, 1, 64, 2, 64)

    stored, factors = zip(*(quantised(one, (0, 1, 2, 3)) for one in wide), strict=True)
    exact = [one.astype(np.float32)[0] * factor.item() for one, factor in zip(stored, factors, strict=True)]
    out = dispatcher.attention(*stored, descale=tuple(f.reshape(1) for f in factors), mask="bottom_right", dtype="fp32")
    check(out[0], by_numpy(*exact, added=causal(40, 64)), "a factor for each tensor")
    lost = np.abs(out[0] - by_numpy(*(one[0] for one in wide), added=causal(40, 64))).max()
    print(f"8 bits cost {lost:.3f} at most")

    blocks = 8, 16  # queries, and keys, that share a factor
    in_blocks = [one.reshape(1, -1, rows, *one.shape[2:]) for one, rows in zip(wide, (8, 16, 16), strict=True)]
    stored, factors = zip(*(quantised(one, (2, 4)) for one in in_blocks), strict=True)
    exact = [(one.astype(np.float32) * f).reshape(w.shape)[0] for one, f, w in zip(stored, factors, wide, strict=True)]
    stored = [one.reshape(w.shape) for one, w in zip(stored, wide, strict=True)]
    by_head = tuple(np.ascontiguousarray(f[:, :, 0, :, 0].transpose(0, 2, 1)) for f in factors)
    out = dispatcher.attention(*stored, descale=by_head, qscale="block_scale", scale_blocks=blocks, dtype="fp32")
    check(out[0], by_numpy(*exact), "a factor for each block of rows and head")

    pages = [one.reshape(4, 16, 2, 64) for one in wide[1:]]  # 4 pages of 16 keys
    (k, k_factors), (v, v_factors) = (quantised(one, (1, 3)) for one in pages)
    q, q_factor = quantised(wide[0][:, -1:], (0, 1, 2, 3))
    exact = [one.astype(np.float32) * f for one, f in ((q, q_factor), (k, k_factors), (v, v_factors))]
    out = dispatcher.decode(
        q, k, v, np.array([64], np.int32), page_table=np.arange(4, dtype=np.int32)[None], dtype="bf16",
        descale=(q_factor.reshape(1), k_factors.reshape(4, 2), v_factors.reshape(4, 2)), qscale="kv_block_scale",
    )  # fmt: skip
    wanted = by_numpy(exact[0][0], *(one.reshape(64, 2, 64) for one in exact[1:]))
    error = np.abs(out[0].astype(np.float32) - wanted).max()
    assert error < 2**-7 * np.abs(wanted).max()
    print(f"a factor for each page and head: as NumPy, within {error:.1e} in bf16")


if __name__ == "__main__":
    main()

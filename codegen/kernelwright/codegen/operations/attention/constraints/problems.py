"""What CK Tile's attention pipelines compute wrongly, as rules for kernels and problems; tests/gemm/amd proves each.

The HIP toolchain sets what the first rule asks for; launchers refuse problems by the second and third
(``kw_attention_lengths_match`` in kernelwright/attention/checks.h, ``check_alibi`` in attn_conditions.c); kernels mask
what the fourth is about (``masked_keys`` in kernelwright/hip/attention). So none is among the rules of specs. Sources
name files of the pinned CK Tile below ``ck_tile/ops/fmha/pipeline``, or below ``ck_tile``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kernelwright.codegen.operations.attention.rules.hip import ALIBI_POSITIONS
from kernelwright.codegen.violations import Violation

_PREFIX = "ck_tile.attention"
_ASYNC = ("qr_async", "qr_async_trload")
_RAW_ASYNC = ("qr_async",)


@dataclass(frozen=True)
class Attention:
    """Input of the rules: CK Tile's name of the pipeline, the tile of keys, padding, and a problem's length.

    ``fast_exp2`` is the value of CK_TILE_FMHA_FWD_FAST_EXP2 in both compiler passes. ``splits``: keys are computed in
    parts. ``hdim`` is the problem's head dimension, ``tile_hdim`` the kernel's, 0 for the same; ``masked`` says whether
    loads respect the difference.
    """

    pipeline: str
    tile_keys: int
    pad_keys: bool
    fast_exp2: bool
    keys: int
    queries: int = 1
    alibi: bool = False
    splits: bool = False
    hdim: int = 0
    tile_hdim: int = 0
    masked: bool = True


@dataclass(frozen=True)
class AttentionRule:
    """A named check, as :class:`~kernelwright.codegen.violations.Rule` is for GEMM."""

    id: str
    reason: str
    check: Callable[[Attention], Iterable[Violation]]


def _fast_exp2(given: Attention) -> Iterator[Violation]:
    if given.pipeline == "qr_async_trload" and not given.fast_exp2:
        why = (
            "it computes exp2 whatever the macro says, and without it the scale is not multiplied by log2(e)"
            " (block_fmha_pipeline_qr_ks_vs_async_trload.hpp)"
        )
        yield Violation(f"{_PREFIX}_fast_exp2", "fast_exp2", "False", why, "True", "True")


def _key_padding(given: Attention) -> Iterator[Violation]:
    if given.pipeline in _ASYNC and not given.pad_keys and given.keys % given.tile_keys:
        why = "without padding the last tile is multiplied as if it were whole: wrong results"
        nearest = str(-(-given.keys // given.tile_keys) * given.tile_keys)
        allowed = f"multiples of {given.tile_keys}, or a kernel that pads them"
        yield Violation(f"{_PREFIX}_key_padding", "keys", str(given.keys), why, allowed, nearest)


def _alibi_positions(given: Attention) -> Iterator[Violation]:
    longest = max(given.queries, given.keys)
    if given.alibi and not given.splits and longest > ALIBI_POSITIONS:
        why = (
            "distances are sums of absolute differences of 16-bit numbers and wrap around"
            " (sad_u16 in ops/fmha/block/block_position_encoding.hpp)"
        )
        allowed = f"at most {ALIBI_POSITIONS} queries and keys, or keys in parts, whose distances have 32 bits"
        yield Violation(f"{_PREFIX}_alibi_positions", "queries, keys", str(longest), why, allowed, str(ALIBI_POSITIONS))


def _padded_rows(given: Attention) -> Iterator[Violation]:
    if given.pipeline in _RAW_ASYNC and not given.masked and given.hdim != (given.tile_hdim or given.hdim):
        why = (
            "raw asynchronous loads take no notice of valid elements (async_get_raw in core/tensor/buffer_view.hpp):"
            " the next head's K is read and multiplied by zeros, and its NaN spreads"
        )
        yield Violation(
            f"{_PREFIX}_padded_rows", "hdim", str(given.hdim), why, f"{given.tile_hdim}, or masked loads", "masked"
        )


RULES = (
    AttentionRule(f"{_PREFIX}_fast_exp2", "The pipeline with transposing LDS reads needs fast exp2.", _fast_exp2),
    AttentionRule(f"{_PREFIX}_key_padding", "Async pipelines without padding serve whole tiles of keys.", _key_padding),
    AttentionRule(f"{_PREFIX}_alibi_positions", "ALiBi counts distances with 16 bits.", _alibi_positions),
    AttentionRule(f"{_PREFIX}_padded_rows", "Raw asynchronous loads of shorter rows are masked.", _padded_rows),
)
"""Every rule, in the order in which violations are listed."""

"""What CK Tile's attention pipelines compute wrongly, as rules for kernels and problems; tests/gemm/amd proves each.

The HIP toolchain sets what the first rule asks for; the launcher refuses problems by the second one
(``kw_attention_lengths_match`` in kernelwright/attention/checks.h). So neither is among the rules of specs.
Sources name files of the pinned CK Tile below ``ck_tile/ops/fmha/pipeline``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kernelwright.codegen.violations import Violation

_PREFIX = "ck_tile.attention"
_ASYNC = ("qr_async", "qr_async_trload")


@dataclass(frozen=True)
class Attention:
    """What the rules look at: CK Tile's name of the pipeline, the tile of keys, padding, and a problem's length.

    ``fast_exp2`` is what both compiler passes are told in CK_TILE_FMHA_FWD_FAST_EXP2.
    """

    pipeline: str
    tile_keys: int
    pad_keys: bool
    fast_exp2: bool
    keys: int


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


RULES = (
    AttentionRule(f"{_PREFIX}_fast_exp2", "The pipeline with transposing LDS reads needs fast exp2.", _fast_exp2),
    AttentionRule(f"{_PREFIX}_key_padding", "Async pipelines without padding serve whole tiles of keys.", _key_padding),
)
"""Every rule, in the order in which violations are listed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.codegen.operations.attention.constraints.problems import RULES, Attention
from kernelwright.codegen.operations.attention.rules.hip import ALIBI_POSITIONS
from kernelwright.codegen.toolchains.hip import HipToolchain

GOOD = Attention(pipeline="qr_async", tile_keys=128, pad_keys=False, fast_exp2=True, keys=384)


def broken(given: Attention) -> list[str]:
    return [violation.rule for rule in RULES for violation in rule.check(given)]


@pytest.mark.parametrize(
    "given",
    [
        GOOD,
        replace(GOOD, keys=333, pad_keys=True),
        replace(GOOD, keys=333, pipeline="qr"),
        replace(GOOD, fast_exp2=False),
        replace(GOOD, pipeline="qr_async_trload"),
        replace(GOOD, alibi=True, keys=ALIBI_POSITIONS, queries=ALIBI_POSITIONS),
        replace(GOOD, alibi=True, keys=2**20, pipeline="qr", splits=True),
        replace(GOOD, hdim=96, tile_hdim=128),
        replace(GOOD, hdim=128, tile_hdim=128, masked=False),
        replace(GOOD, hdim=96, tile_hdim=128, masked=False, pipeline="qr"),
    ],
)
def test_what_is_right_is_legal(given: Attention) -> None:
    assert broken(given) == []


def test_transposed_loads_without_fast_exp2_are_refused() -> None:
    assert broken(replace(GOOD, pipeline="qr_async_trload", fast_exp2=False)) == ["ck_tile.attention_fast_exp2"]


@pytest.mark.parametrize("keys", [1, 100, 333, 385])
def test_async_without_padding_is_refused_a_part_of_a_tile(keys: int) -> None:
    assert broken(replace(GOOD, keys=keys)) == ["ck_tile.attention_key_padding"]


@pytest.mark.parametrize("long", [replace(GOOD, keys=2**16 + 128), replace(GOOD, queries=2**16 + 1)])
def test_alibi_is_refused_beyond_what_16_bits_count(long: Attention) -> None:
    assert broken(replace(long, alibi=True)) == ["ck_tile.attention_alibi_positions"]


def test_raw_asynchronous_loads_of_shorter_rows_are_masked() -> None:
    given = replace(GOOD, hdim=96, tile_hdim=128, masked=False)
    assert broken(given) == ["ck_tile.attention_padded_rows"]


def test_the_toolchain_sets_what_the_rule_asks_for() -> None:
    assert (
        "-DCK_TILE_FMHA_FWD_FAST_EXP2=1"
        in HipToolchain.wheel().compile("x.hpp", "x.s", "gfx950", ("hip_common",), 800).argv
    )

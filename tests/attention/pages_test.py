from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention.pages import append, from_block_table, from_indices, paged, rotated, vectorized_k, vectorized_v
from attention.philox import philox, random_bytes

Array = np.ndarray[Any, np.dtype[Any]]


def requests(lengths: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(lengths)
    return [rng.standard_normal((length, 2, 8)).astype(np.float32) for length in lengths]


@pytest.mark.parametrize("page_size", [1, 4, 16])
@pytest.mark.parametrize("lengths", [(5,), (16, 1, 33, 4), (0, 7)])
def test_both_tables_find_the_keys(lengths: tuple[int, ...], page_size: int) -> None:
    stored = requests(lengths)
    pages = paged(stored, page_size, np.random.default_rng(0))
    for b, rows in enumerate(stored):
        np.testing.assert_array_equal(from_block_table(pages.cache, pages.block_table[b], lengths[b]), rows)
        np.testing.assert_array_equal(from_indices(pages.cache, pages, b), rows)
    assert len(set(pages.indices.tolist())) == len(pages.indices) < len(pages.cache)
    assert np.isfinite(pages.cache).sum() == sum(rows.size for rows in stored)  # all else is poisoned


def test_pages_are_shuffled() -> None:
    pages = paged(requests((64,)), 1, np.random.default_rng(0))
    assert (np.diff(pages.indices) != 1).any()


def test_vectors_of_16_bytes() -> None:
    cache = np.arange(2 * 8 * 2 * 16, dtype=np.float16).reshape(2, 8, 2, 16)
    k, v = vectorized_k(cache), vectorized_v(cache)
    assert k.shape == (2, 2, 2, 8, 8) and v.shape == (2, 2, 1, 16, 8)
    for page, place, head, e in np.ndindex(cache.shape):
        assert k[page, head, e // 8, place, e % 8] == cache[page, place, head, e]
        assert v[page, head, place // 8, e, place % 8] == cache[page, place, head, e]


def test_appended_keys_stand_behind() -> None:
    stored, new = requests((5, 8)), requests((3, 2))
    whole = [np.concatenate(pair) for pair in zip(stored, new, strict=True)]
    pages = paged(whole, 4, np.random.default_rng(1))
    before = paged(stored, 4, np.random.default_rng(1))
    room = type(pages)(
        np.full_like(pages.cache, np.nan),
        before.lengths,
        pages.block_table,
        pages.indptr,
        pages.indices,
        pages.last_page_lengths,
    )
    for b, rows in enumerate(stored):
        for place, row in enumerate(rows):
            room.cache[pages.block_table[b, place // 4], place % 4] = row
    np.testing.assert_array_equal(append(room.cache, room, new), pages.cache)
    with pytest.raises(AssertionError, match="request 0 has no page for key 8"):
        append(before.cache, before, [np.zeros((9, 2, 8)), np.zeros((0, 2, 8))])


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_turns_pairs_by_their_place(interleaved: bool) -> None:
    places, half = 9, 3
    angles = np.arange(places)[:, None] / 10.0 ** np.arange(half)
    x = np.random.default_rng(3).standard_normal((4, 2, 8))
    turned = rotated(x, np.cos(angles), np.sin(angles), 5, interleaved)
    for row, head, pair in np.ndindex(4, 2, half):
        one, two = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + half)
        rotation = np.exp(1j * angles[5 + row, pair])
        expected = (x[row, head, one] + 1j * x[row, head, two]) * rotation
        np.testing.assert_allclose(turned[row, head, one] + 1j * turned[row, head, two], expected, rtol=1e-12)
    np.testing.assert_array_equal(turned[..., 2 * half :], x[..., 2 * half :])


def test_rotation_keeps_distances() -> None:
    angles = np.arange(20)[:, None] / 7.0 ** np.arange(4)
    q, k = np.random.default_rng(4).standard_normal((2, 1, 1, 8))
    cos, sin = np.cos(angles), np.sin(angles)
    pairs = [[rotated(x[None], cos, sin, at, False) for x, at in ((q, i), (k, i + 3))] for i in range(10)]
    products = [float((one * other).sum()) for one, other in pairs]
    np.testing.assert_allclose(products, products[0])


@pytest.mark.parametrize(
    ("counter", "key", "rounds", "expected"),
    [  # Random123's known answers
        (0, 0, 10, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 10, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0, 0, 7, "5f6fb709 0d893f64 4f121f81 4f730a48"),
    ],
)
def test_philox_gives_the_known_answers(counter: int, key: int, rounds: int, expected: str) -> None:
    numbers = philox(np.full(4, counter, np.uint32), key, rounds)
    assert " ".join(f"{int(number):08x}" for number in numbers) == expected


def test_bytes_of_dropout_are_those_of_tiles_of_32() -> None:
    seed, offset = 0x123456789, 7
    drawn = random_bytes((2, 3, 70, 40), seed, offset)
    for request, head, i, j in ((0, 0, 0, 0), (1, 2, 69, 39), (0, 1, 45, 33), (1, 0, 24, 8)):
        lane = j % 32 + 32 * (i % 16 // 8)
        counter = np.array([offset + 64 * (3 * request + head) + lane, 0, i // 32, j // 32], np.uint32)
        own = philox(counter, seed).view(np.uint8)
        assert drawn[request, head, i, j] == own[i % 32 // 16 * 8 + i % 8]
    share = float((drawn <= int(0.7 * 255)).mean())
    assert abs(share - 0.7) < 0.02
    far = random_bytes((1, 1, 32, 32), seed, (1 << 32) - 1)  # lanes beyond the first count in the upper half
    assert far[0, 0, 0, 1] == philox(np.array([0, 1, 0, 0], np.uint32), seed).view(np.uint8)[0]

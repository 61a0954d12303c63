from __future__ import annotations

from kernelwright.dispatch.core.cache import Cache


def test_what_is_used_stays_and_the_rest_is_bounded() -> None:
    cache: Cache[int, str] = Cache(8)
    for key in range(100):
        cache.put(key, str(key))
        assert cache.get(0) == "0"
        assert len(cache) <= 8
    assert cache.get(99) == "99" and cache.get(50) is None


def test_the_first_value_stays_until_replaced() -> None:
    cache: Cache[int, list[int]] = Cache(4)
    first = cache.put(1, [1])
    assert cache.put(1, [2]) is first
    cache.replace(1, [3])
    assert cache.get(1) == [3] and len(cache) == 1
    cache.clear()
    assert cache.get(1) is None and len(cache) == 0


def test_what_cannot_be_hashed_has_no_value() -> None:
    cache: Cache[tuple[object, ...], int] = Cache(4)
    assert cache.get(([],)) is None

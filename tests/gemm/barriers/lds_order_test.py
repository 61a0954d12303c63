from __future__ import annotations

import pytest

from gemm.barriers.lds_order import Accesses, lds_order, without_order

TILE = """
kernel: ; @kernel
	buffer_load_dwordx4 v[0:3], v8, s[0:3], 0 offen
	ds_write_b128 v9, v[0:3] offset:64
	s_waitcnt lgkmcnt(0)
	s_barrier
	ds_read2_b64 v[0:3], v9 offset1:1 ; s_barrier
	ds_read_b64_tr_b16 v[4:5], v9
	ds_bpermute_b32 v6, v7, v6
	s_waitcnt lgkmcnt(0)
	s_barrier
.LBB0_1:
	buffer_load_dword v9, s[0:3], 0 offen lds
	s_endpgm
"""
READ = "\tds_read_b64_tr_b16 v[4:5], v9\n"


def test_accesses_are_counted_between_barriers_and_labels() -> None:
    assert lds_order(TILE) == [
        "label",
        Accesses(written=128),
        "barrier",
        Accesses(read=128 + 64),
        "barrier",
        "label",
        Accesses(direct=1),
    ]


@pytest.mark.parametrize("barrier", ["s_barrier", "s_barrier_signal -1"])
def test_a_load_below_its_barrier_is_seen(barrier: str) -> None:
    before = TILE.replace("s_barrier\n", f"{barrier}\n")
    after = before.replace(READ, "").replace(f"\t{barrier}\n.LBB0_1", f"\t{barrier}\n{READ}.LBB0_1")
    assert after != before and lds_order(after) != lds_order(before)
    assert without_order(lds_order(after)) != without_order(lds_order(before))


def test_the_order_between_two_barriers_is_free() -> None:
    other = TILE.replace(READ, "").replace("\tds_read2", f"{READ}\tds_read2")
    assert other != TILE and lds_order(other) == lds_order(TILE)


def test_blocks_may_lie_elsewhere() -> None:
    first, second = TILE.split(".LBB0_1:")
    other = f"kernel:\n.LBB0_1:{second}{first.replace('kernel:', '.LBB0_2:')}"
    assert lds_order(other) != lds_order(TILE)
    assert without_order(lds_order(other)) == without_order(lds_order(TILE))

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest
from amd.published import Row, engine_rows, import_tables, read, table_rows, write

from amd import published

HEAD = "cu_num,M,N,K,kernelId,splitK,us,kernelName,tflops,bw,errRatio\n"
ROWWISE = "a8w8_rowwise_256x128x192x128_32x32_2x3_8x32x1_8x32x1_1x32x1x8_8x8x1_1x1_intrawave_v3"
BLOCKS = "a8w8_blockscale_1x128x128_256x32x64x256_16x16_16x16_16x16x1_16x16x1_1x32x1x8_8_2x1_intrawave_v1"
REPEATS = "a8w8_blockscale_1x128x128_256x64x128x128_16x16_32x32_1x2_8x32x1_8x32x1_1x32x1x8_8_1x1_intrawave_v3"
CK_TILE = "a8w8_blockscale_cktile_192x256x128_4x2x1_16x16x128_intrawave_0x1x0_1"
SHUFFLED = "a8w8_bpreshuffle_cktile_0x0x8x4x1x0x0x0x0x1_16x64x512_1x4x1_16x16x64_default"
ORACLE = "gemm_universal_fp8_rcr_compv3_default_intrawave_False_False_False_False_64x64x256_4x1x1_16x16x128"


def line(kernel: str, us: float = 100.0, units: int = 256, split: int = 0) -> str:
    return f"{units},64,512,7168,3,{split},{us},{kernel},1,1,0\n"


def only(text: str) -> Row:
    (row,) = table_rows(text, "table.csv")
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("kernel", "family", "tile"),
    [
        (ROWWISE, "a8w8_rowwise", (128, 192, 128, 2, 2)),
        (BLOCKS, "a8w8_blockscale", (32, 64, 256, 1, 4)),  # no repeats in its name
        (REPEATS, "a8w8_blockscale", (64, 128, 128, 2, 2)),
        (CK_TILE, "a8w8_blockscale_cktile", (192, 256, 128, 4, 2)),
        (SHUFFLED, "a8w8_bpreshuffle_cktile", (16, 64, 512, 1, 4)),
    ],
)
def test_names_say_family_tile_and_waves(kernel: str, family: str, tile: tuple[int, ...]) -> None:
    row = only(HEAD + line(kernel))
    assert (row.family, row.tile) == (family, tile)
    assert (row.m, row.n, row.k, row.us, row.arch, row.source) == (64, 512, 7168, 100.0, "gfx950", "table.csv")
    assert row.scaled == ("blockscale" in kernel) and row.shuffled == ("bpreshuffle" in kernel)


def test_devices_are_named_or_follow_from_their_units() -> None:
    assert only(HEAD + line(ROWWISE, units=80)).arch == "gfx942"
    newer = "gfx," + HEAD + "gfx950," + line(ROWWISE, units=304)
    assert only(newer).arch == "gfx950"


def test_slices_are_a_power_of_two() -> None:
    assert only(HEAD + line(ROWWISE, split=3)).split_k == 8


@pytest.mark.parametrize(
    "text",
    [
        line("_ZN5aiter41f4gemm_bf16_per1x32Fp4_BpreShuffle_64x128E"),
        line(ROWWISE, us=0),
        line(ROWWISE, us=0.001),  # faster than the stated peak
        line(ROWWISE, units=64),  # no device that is known
    ],
)
def test_rows_that_say_nothing_are_left_out(text: str) -> None:
    assert list(table_rows(HEAD + text, "table.csv")) == [None]


def test_the_dispatchers_table_has_rates() -> None:
    text = f"m,n,k,oracle_best_tflops,oracle_best_kernel\n1,4096,2048,2.0,{ORACLE}\n"
    row = only(text)
    assert row.us == pytest.approx(8.3886) and row.tile == (64, 64, 256, 4, 1) and row.family == "ck_tile_fp8"


def test_other_tables_are_refused() -> None:
    with pytest.raises(ValueError, match=r"table.csv is no table of aiter .* its columns are a, b"):
        list(table_rows("a,b\n1,2\n", "table.csv"))


def test_wheels_and_folders_are_read_once(tmp_path: Path) -> None:
    name = "aiter/configs/model_configs/a8w8_tuned_gemm_x.csv"
    with zipfile.ZipFile(tmp_path / "one.whl", "w") as wheel:
        wheel.writestr(name, HEAD + line(ROWWISE) + line(ROWWISE, us=0))
        wheel.writestr("aiter/configs/a8w8_untuned_gemm.csv", "M,N,K\n1,1,1\n")
        wheel.writestr("aiter/configs/tuned_fmoe.csv", "token\n1\n")
    folder = tmp_path / "folder"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs/a8w8_tuned_gemm_x.csv").write_text(HEAD + line(ROWWISE))
    rows, left_out = import_tables([tmp_path / "one.whl", folder], "aiter/")
    assert [row.source for row in rows] == ["aiter/a8w8_tuned_gemm_x.csv"] and left_out == 1
    write(rows, tmp_path / "table.csv.gz")
    again = tmp_path / "again.csv.gz"
    write(read(tmp_path / "table.csv.gz"), again)
    assert read(again) == rows and again.read_bytes() == (tmp_path / "table.csv.gz").read_bytes()


ENGINE = "kernel,problem_idx,m,n,k,batch,latency_ms,choices,status,identity,arch,device\n"


def test_tables_of_the_tile_engine_name_kernels_by_identity() -> None:
    extents = {"m": 128, "n": 64, "k": 32}
    spec = {"dtype_a": "bf16", "layout": "rcr", "tile": extents, "wave": {"m": 2, "n": 1, "k": 1}}
    lines = (
        "slow,0,16,32,64,2,0.5,,ok,aa,gfx942,hip:0\n"
        "fast,0,16,32,64,2,0.25,split_k=4,ok,bb,gfx942,hip:0\n"
        "off,0,16,32,64,2,0.1,,wrong,aa,gfx942,hip:0\n"
        "none,1,16,32,64,1,,,refused,aa,gfx942,hip:0\n"
    )
    row, none = engine_rows(ENGINE + lines, "t.csv", {"aa": spec, "bb": spec})
    assert none is None
    assert row == Row("t.csv", "gfx942", 304, "kernelwright_bf16_rcr", 2, 2, 16, 32, 64, 4, 128, 64, 32, 2, 1, 250.0)
    counted = ENGINE.replace("device\n", "device,units\n") + lines.replace("hip:0\n", "hip:0,80\n")
    (fewer, _) = engine_rows(counted, "t.csv", {"aa": spec, "bb": spec})
    assert fewer is not None and fewer.units == 80
    with pytest.raises(ValueError, match="has times of fast, which --library does not hold"):
        list(engine_rows(ENGINE + lines, "t.csv", {}))
    with pytest.raises(ValueError, match="is no GEMM table"):
        list(engine_rows("a,b\n", "t.csv", {}))


def test_the_committed_table_is_of_the_pinned_wheel() -> None:
    """Each row's source names the wheel's version, and no row is faster than the stated peak."""
    path = Path(__file__).resolve().parents[1] / "results/amd_published_gemm_aiter_0.1.7.csv.gz"
    rows = read(path)
    assert len(rows) == 3080 and all(row.source.startswith("aiter_0.1.7/") for row in rows)
    assert all(
        2 * row.batch * row.m * row.n * row.k <= row.us * published.peak(row.arch, row.size, row.units) for row in rows
    )
    assert len(gzip.compress(path.read_bytes())) < 100_000

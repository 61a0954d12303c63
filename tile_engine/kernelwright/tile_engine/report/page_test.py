from __future__ import annotations

import html.parser
import sys
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.report.page import Input, page, write_pngs

COLUMNS = ("m", "n", "k", "dtype")


def row(kernel: str, problem: int, ms: float | None, **fields: str) -> dict[str, str]:
    rates = {"latency_ms": "", "tflops": "", "bandwidth_gb_s": ""}
    if ms:
        rates = {"latency_ms": str(ms), "tflops": str(1 / ms), "bandwidth_gb_s": str(9 / ms)}
    base = {"kernel": kernel, "identity": f"id-{kernel}", "problem_idx": str(problem), "status": "ok", "reason": ""}
    place = {"arch": "sm_90a", "device": "cuda:0", "date": "2026-11-22", "selected": ""}
    return {**base, **place, **rates, "m": "64", "n": "32", "k": "16", "dtype": "bf16", **fields}


ROWS = [
    row("fast", 0, 1.0), row("slow", 0, 2.0, selected="1"), row("fast", 1, 3.0, selected="1"),
    row("<broken>", 0, None, status="crashed", reason="signal SIGSEGV: <boom>"),
    row("other", 1, None, status="refused"),
]  # fmt: skip


def test_refused_pairs_are_folded_by_reason() -> None:
    refused = [
        row("x", 2, None, status="refused", reason="layout is rrr"),
        row("y", 2, None, status="refused", reason="layout is rrr"),
    ]
    text = page(Input("t.csv", [*ROWS, *refused]), COLUMNS, None)
    assert "3 pairs of kernel and problem, for 2 reasons; 1 problem that no kernel serves" in text
    assert "Not served: 2." in text and text.count("layout is rrr") == 1 and "<details>" in text


def test_models_and_layers_stand_beside_the_extents() -> None:
    named = [{**one, "model": f"M{one['problem_idx']}", "layer": "output"} for one in ROWS]
    text = page(Input("t.csv", named), COLUMNS, None)
    assert '<th scope="col">model</th>' in text and "<td>M1</td>" in text


class Balanced(html.parser.HTMLParser):
    """Fails on a tag that is closed in another order than it was opened, and collects what a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href") and tag != "use"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_whole_html_that_fetches_nothing() -> None:
    text = page(Input("t.csv", ROWS), COLUMNS, load("sm_90a"), Input("old.csv", [row("fast", 0, 0.5)]))
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert all(not where or where.startswith("#") for where in parser.fetched)
    assert text.count("<svg") == 3
    for said in (
        "mean\n75.0 %",
        "&lt;broken&gt;",
        "signal SIGSEGV: &lt;boom&gt;",
        "3 ok, 1 crashed, 1 refused",
        "Since old.csv",
    ):
        assert said in text
    assert '<td class="bad">2.000</td>' in text  # twice the time of the earlier table
    assert "<broken>" not in text


def test_what_was_right_before_and_is_not_any_more_comes_first() -> None:
    earlier = Input(
        "old.csv", [row("<broken>", 0, 1.0), row("other", 1, 1.0), row("fast", 0, 2.0), row("gone", 0, 1.0)]
    )
    text = page(Input("t", ROWS), COLUMNS, None, earlier)
    since = text[text.index("Since old.csv") : text.index("Roofline</h2>")]
    places = [since.index(said) for said in ("&lt;broken&gt;", ">refused<", ">0.500<")]
    assert places == sorted(places) and "gone" not in since
    with pytest.raises(ValueError, match="problem 1 is another one in the earlier table"):
        page(Input("t", ROWS), COLUMNS, None, Input("old", [row("fast", 1, 1.0, m="65")]))


def test_columns_that_all_problems_share_are_said_once() -> None:
    rows = [row("fast", 0, 1.0), row("fast", 1, 3.0, m="128")]
    text = page(Input("t", rows), COLUMNS, None)
    assert "all problems</dt><dd>n 32, k 16, dtype bf16" in text and ">m</th>" in text and ">k</th>" not in text


def test_a_cost_of_kernels_is_what_few_of_them_are_drawn_over() -> None:
    cost = {"id-fast": 7.5, "id-slow": 1.0}
    text = page(Input("t", ROWS[:3]), COLUMNS, None, cost=cost)
    assert "compile s</th>" in text and "<td>8.5</td>" in text and "compile seconds" in text
    with pytest.raises(ValueError, match="no library holds kernel id-slow"):
        page(Input("t", ROWS[:3]), COLUMNS, None, cost={"id-fast": 1.0})


def test_charts_have_short_names() -> None:
    named = {"id-fast": "bf16 rcr 64x64x32", "id-slow": "bf16 rcr 64x64x32"}
    text = page(Input("t", ROWS[:3], named), COLUMNS, None)
    assert ">bf16 rcr 64x64x32 id-fast<" in text and ">bf16 rcr 64x64x32 id-slow<" in text
    assert ">fast</text>" not in text and ">fast</text>" in page(Input("t", ROWS[:3]), COLUMNS, None)


def test_equal_tables_give_equal_pages() -> None:
    assert page(Input("t", ROWS), COLUMNS, None) == page(Input("t", ROWS), COLUMNS, None)


def test_a_table_of_failures_alone_says_what_failed() -> None:
    rows = [row(f"bad{number}", 0, None, status="crashed", reason=f"signal {number}") for number in range(60)]
    text = page(Input("t.csv", [*rows, row("other", 1, None, status="refused")]), COLUMNS, load("sm_90a"))
    assert "No row has a time" in text and "<svg" not in text and "Roofline" not in text
    assert "60 crashed, 1 refused" in text and "signal 49<" in text and "signal 50<" not in text
    assert "The first 50 of 60 failures." in text
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []


def test_counts_of_a_simulated_device_are_compared() -> None:
    rows = [row("many", 0, None, instructions="matrix=8;vector=20;all=28"), row("few", 0, None, instructions="all=27")]
    rows += [
        row("help", 0, None, instructions="all=1", auxiliary="1"),
        row("off", 0, None, status="wrong", instructions="all=2"),
    ]
    text = page(Input("t.csv", rows[:1] + rows[2:]), COLUMNS, None)
    assert "Fewest instructions" in text and "<td>28</td>" in text and "8 matrix, 20 vector" in text
    assert "<td>27</td>" in page(Input("t.csv", rows), COLUMNS, None)


def test_references_and_kernels_that_were_too_slow_to_time_are_no_failures() -> None:
    rows = [
        row("fast", 0, 1.0),
        row("torch", 0, 0.9, status="reference", identity=""),
        row("b", 0, None, status="slow"),
    ]
    text = page(Input("t.csv", rows), COLUMNS, None)
    assert "None: no kernel gave a wrong result" in text and "<dd>2 × 1</dd>" in text


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # what an environment without it imports
    for module in ("page", "charts"):
        monkeypatch.delitem(sys.modules, f"kernelwright.tile_engine.report.{module}")
    monkeypatch.delattr("kernelwright.tile_engine.report.charts")
    assert main(["report", "t.csv", "--output", str(tmp_path / "t.html")]) == 2
    assert capsys.readouterr().err == "error: charts need matplotlib; pip install 'kernelwright[report]'\n"


def test_charts_are_png_files_too(tmp_path: Path) -> None:
    written = write_pngs(Input("t", ROWS), load("sm_90a"), tmp_path / "new")
    assert [path.name for path in written] == ["roofline.png", "cover.png", "heat_map.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpu.report import headline_start, headlines, main, section, written

KIND = "test library"


def _result(set_name: str, what: str, ratio: float, **more: Any) -> dict[str, Any]:
    spread = {"median": ratio, "min": ratio - 0.01, "max": ratio + 0.01}
    us = {"kernelwright": {"median": 10.0}, "matmul": {"median": 10 * ratio}, "addmm": {"median": 99.0}}
    shape = {"m": 7, "n": 16, "k": 32}
    return {"set": set_name, "what": what, **shape, "us": us, "reference": "matmul", "ratio": spread, **more}


def _report(*results: dict[str, Any]) -> dict[str, Any]:
    library = {"kind": KIND, "kernels": 3, "toolchains": {"cuda": "nvcc 13"}}
    where = {"gpu": "GPU", "driver": "580", "cuda": "13.0", "torch": "2.11", "python": "3.12", "date": "2026-11-23"}
    return {"environment": {**where, "library": library}, "results": list(results)}


REPORT = _report(
    _result("tuned", "bf16", 1.0),
    _result("tuned", "bf16", 0.81),
    _result("held-out", "bf16", 0.5, family="Some-7B"),
    _result("held-out", "bf16 + bias", 0.7, family="Some-7B"),
    _result("tuned", "bf16 + bias", 0.9),
    {"set": "tuned", "what": "int8", "m": 1, "n": 2, "k": 3, "state": "unequal", "errors": {"kernelwright": 0.5}},
)


def test_headlines_keep_tuned_and_unseen_shapes_apart() -> None:
    tuned, unseen = headlines(REPORT, "r.json")
    assert tuned.startswith(headline_start(KIND))
    assert "shapes it was tuned on | – | geometric means (worst): bf16 0.90 (0.81); bf16 + bias 0.90 (0.90) |" in tuned
    assert "unseen shapes | – | geometric means (worst): bf16 0.50 (0.50); bf16 + bias 0.70 (0.70) |" in unseen


def test_section_has_machine_library_means_families_and_fused_calls() -> None:
    text = section(REPORT, "r.json")
    assert "Test library, 3 kernels (nvcc 13); GPU, driver 580, CUDA 13.0, torch 2.11" in text
    assert "| tuned on | bf16 | 2 | 0.900 | 1 | 0.810 [0.800, 0.820] (7×16×32) |" in text
    assert (
        "| unseen: geometric mean (worst) | bf16 | fused |\n|---|---|---|\n| Some-7B | 0.50 (0.50) | 0.70 (0.70) |"
        in text
    )
    assert "| 7×16×32 | bf16 + bias | 10.0 | 9.0 | `matmul` | 0.900 [0.890, 0.910] |" in text


def test_unequal_outputs_have_no_ratio_and_are_listed() -> None:
    text = section(REPORT, "r.json")
    assert "| int8 |" not in text
    assert "* unequal: int8, 1 shape (1×2×3)" in text
    assert "Without a ratio" not in section(_report(_result("tuned", "bf16", 1.0)), "r.json")


def test_a_page_is_filled_and_filled_again(tmp_path: Path) -> None:
    old = f"{headline_start(KIND)}(#x), tuned | ≥ 1 | old | `old.json` |"
    page, result = tmp_path / "page.md", tmp_path / "r.json"
    page.write_text(f"# Page\n\n{old}\n| next |\n\n<!-- speed: {KIND} -->\nold\n<!-- end of speed: {KIND} -->\n\nEnd\n")
    result.write_text(json.dumps(REPORT))
    main([str(result), "--write", str(page)])
    first = page.read_text()
    assert "old" not in first
    assert "\n".join([*headlines(REPORT, "r.json", "≥ 1"), "| next |"]) in first
    assert section(REPORT, "r.json") in first
    assert first.endswith(f"<!-- end of speed: {KIND} -->\n\nEnd\n")
    main([str(result), "--write", str(page)])
    assert page.read_text() == first


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no single pair"):
        written("# Page\n", REPORT, "r.json")
    with pytest.raises(ValueError, match="no row that begins"):
        written(f"<!-- speed: {KIND} -->\n<!-- end of speed: {KIND} -->\n", REPORT, "r.json")


def test_the_page_of_the_documentation_has_a_place_for_both_kinds() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md").read_text()
    for kind in ("test library", "shipped library"):
        report = _report(_result("tuned", "bf16", 1.0))
        report["environment"]["library"]["kind"] = kind
        assert section(report, "r.json") in written(page, report, "r.json")

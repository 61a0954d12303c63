"""Training on a table whose fastest kernels follow from a rule."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.arch import load
from kernelwright.codegen.heuristics.model import read_model
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.learning.evaluate import evaluate
from kernelwright.tile_engine.learning.examples import Examples, examples_of, read_specs
from kernelwright.tile_engine.learning.train import LEAST_WEIGHT, Options, flat, shares, weights, within
from kernelwright.tile_engine.results.csv_file import read_rows

TILES = (16, 64, 256)
COLUMNS = "kernel,problem_idx,m,n,k,batch,layout,dtype,dtype_c,latency_ms,tflops,status,identity,arch,selected,choices"


def spec(tile: int) -> dict[str, Any]:
    extent = {"m": tile, "n": 128, "k": 64}
    types = dict.fromkeys(("dtype_a", "dtype_b", "dtype_c"), "bf16")
    return {**types, "tile": extent, "wave": dict.fromkeys("mnk", 1), "warp_tile": extent}


def rate(m: int, tile: int) -> float:
    """A tile computes its rows whatever the problem has, and large tiles are more efficient."""
    return 100.0 * m / (-(-m // tile) * tile) * {16: 0.4, 64: 0.7, 256: 1.0}[tile]


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    """A table and the folder of its library's manifest."""
    table, library = tmp_path / "table.csv", tmp_path / "library"
    library.mkdir()
    kernels = [{"identity": f"id{tile}", "name": f"k{tile}", "spec": spec(tile)} for tile in TILES]
    (library / "manifest.json").write_text(json.dumps({"arch": "sm_90a", "kernels": kernels}))
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS.split(","))
        for index, m in enumerate([1, 7, 16, 30, 40, 64, 100, 120, 200, 256, 300, 500, 900, 1024, 2000] * 4):
            n = 1024 * (1 + index // 15)
            for tile in TILES:
                tflops = rate(m, tile)
                ms = 2 * m * n * 4096 / tflops / 1e9
                chosen = "1" if tile == 64 else ""
                row = [f"k{tile}", index, m, n, 4096, 1, "rcr", "bf16", "bf16", ms, tflops, "ok", f"id{tile}", "sm_90a"]
                writer.writerow([*row, chosen, "split_k=1"])
    return table, library


def options(data: tuple[Path, Path]) -> list[str]:
    return ["--table", str(data[0]), "--library", str(data[1])]


def test_a_model_learns_the_rule_on_unseen_families(
    data: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("lightgbm", reason="training needs LightGBM")
    model = tmp_path / "model.json"
    more = ["--arch", "sm_90a", "--dtype", "bf16", "--output", str(model), "--trees", "80", "--leaves", "15"]
    assert main(["train", *options(data), *more]) == 0
    assert "families held out in turn, 60 problems" in capsys.readouterr().out
    content = read_model(model)
    assert content.provenance["held_out_families_in_turn"]["mean"] > 0.97
    assert content.provenance["rows"] == 180 and content.provenance["data"] == ["table.csv"]
    text = model.read_text()
    assert main(["train", *options(data), *more]) == 0 and model.read_text() == text
    capsys.readouterr()
    assert main(["evaluate", *options(data), *options(data), "--model", str(model)]) == 0
    assert "warning: tables share problem numbers" in capsys.readouterr().err
    both = ["train", *options(data), *more, "--output", str(tmp_path / "both.json")]
    assert main([*both, "--also", "fp16"]) == 0
    of_both = read_model(tmp_path / "both.json")
    assert (content.dtypes, of_both.dtypes) == (("bf16",), ("bf16", "fp16")) and of_both.trees == content.trees
    assert main([*both, "--also", "fp8"]) == 2
    capsys.readouterr()
    assert main(["evaluate", *options(data), "--model", str(model), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"]["mean"] > 0.98 > document["dispatcher"]["mean"]
    assert main(["validate", *options(data), "--model", str(model)]) == 2
    assert "the model was trained on table.csv" in capsys.readouterr().err
    other = data[0].rename(data[0].with_name("other.csv"))
    chart = tmp_path / "chart.png"
    check = ["validate", "--table", str(other), "--library", str(data[1]), "--model", str(model), "--png", str(chart)]
    assert main(check) == 0 and chart.is_file()
    assert main([*check, "--least", "1.01"]) == 2 and "allowed: at least 1.01" in capsys.readouterr().err


def test_evaluations_say_what_they_are_shares_of() -> None:
    rows = [(0, 10.0, 3.0), (0, 20.0, 1.0), (0, 5.0, 2.0), (1, 8.0, 1.0), (1, 4.0, 0.0)]
    problem, tflops, scores = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows))
    score = evaluate(Examples(none, tflops, problem, none, none, none > 0, ("k",) * 5, (), {}), scores)
    assert (score.problems, score.mean, score.median, score.p10, score.minimum) == (2, 0.75, 0.75, 0.5, 0.5)
    assert score.hits == {1: 1, 3: 2, 5: 2} and score.top == {1: 0.75, 3: 1.0, 5: 1.0}


def test_rows_weigh_by_their_share_of_the_fastest_rate() -> None:
    none = np.zeros(3)
    tflops, problem = np.array([10.0, 5.0, 8.0]), np.array([0, 0, 1])
    assert shares(Examples(none, tflops, problem, none, none, none > 0, ("k",) * 3, (), {})).tolist() == [1.0, 0.5, 1.0]


def test_what_a_prior_misses_of_all_kernels_alike_is_not_learned() -> None:
    none, problem = np.zeros(4), np.array([0, 0, 0, 1])
    slow = np.array([False, False, True, False])
    examples = Examples(none, np.array([10.0, 10.0, 5.0, 8.0]), problem, none, none, slow, ("k",) * 4, (), {})
    assert weights(examples, Options()).tolist() == [1.0, 1.0, LEAST_WEIGHT, 1.0]
    assert weights(examples, Options(evenness=1.0))[[0, 3]].tolist() == [1 / 3, 1.0]
    # The slow kernel's rate is an upper bound: it was predicted to be slower, so nothing is known to be wrong.
    assert within(examples, np.array([0.5, 0.1, 0.9, 7.0]), Options()) == pytest.approx([0.2, -0.2, 0.0, 0.0])
    assert within(examples, np.array([0.5, 0.1, -0.3, 7.0]), Options()) == pytest.approx([0.2, -0.2, -0.6, 0.0])


def test_specs_come_from_a_list_too(tmp_path: Path) -> None:
    spec = {"op": "gemm", "dtype": "bf16", "layout": "rcr", "tile": [64, 128, 64], "wave": [1, 1, 1]}
    path = tmp_path / "specs.json"
    path.write_text(json.dumps([{**spec, "warp_tile": [64, 128, 16], "scheduler": "pingpong", "persistent": True}]))
    (parsed,) = read_specs([path], load("sm_90a")).values()
    assert parsed["tile"] == {"m": 64, "n": 128, "k": 64} and parsed["dtype_c"] == "bf16"
    with pytest.raises(ValueError, match=r"holds no manifest\.json"):
        read_specs([tmp_path], load("sm_90a"))


def test_each_number_of_slices_is_an_example(data: tuple[Path, Path]) -> None:
    rows = read_rows(data[0])[:3]
    cut = {**rows[0], "choices": "split_k=2", "latency_ms": "1e9", "tflops": "0.001"}
    repeated = {**rows[0], "latency_ms": str(float(rows[0]["latency_ms"]) * 2)}
    specs = {f"id{tile}": spec(tile) for tile in TILES}
    examples = examples_of([*rows, cut, repeated], specs, schema_of("gemm"), ("bf16",), load("sm_90a"), 132)
    slices = examples.features[:, list(schema_of("gemm").features).index("slices")]
    assert slices.tolist() == [1, 1, 1, 2] and examples.tflops.argmin() == 3
    with pytest.raises(ValueError, match=r"no library holds kernel id16 \(3 such\)"):
        examples_of([*rows, cut], {}, schema_of("gemm"), ("bf16",), load("sm_90a"), 132)
    with pytest.raises(ValueError, match="hold no time of fp8"):
        examples_of(rows, specs, schema_of("gemm"), ("fp8",), load("sm_90a"), 132)


def test_what_was_too_slow_to_be_timed_counts_where_it_is_asked_for(data: tuple[Path, Path]) -> None:
    rows = read_rows(data[0])[:3]
    slow = {**rows[2], "status": "slow", "latency_ms": "", "tflops": ""}
    specs = {f"id{tile}": spec(tile) for tile in TILES}
    arguments = (specs, schema_of("gemm"), ("bf16",), load("sm_90a"), 132)
    assert len(examples_of([*rows[:2], slow], *arguments).tflops) == 2
    examples = examples_of([*rows[:2], slow], *arguments, too_slow=True)
    assert dict(zip(examples.kernels, examples.tflops.tolist(), strict=True))["k256"] == max(examples.tflops) / 2
    assert examples_of([*rows, slow], *arguments, too_slow=True).tflops.tolist() == [
        float(row["tflops"]) for row in rows
    ]


def test_a_tree_of_lightgbm_becomes_lists() -> None:
    leaf = [{"leaf_value": value} for value in (1.0, 2.0, 3.0)]
    inner = {"split_feature": 4, "threshold": 0.5, "decision_type": "<=", "left_child": leaf[0], "right_child": leaf[1]}
    root = {"split_feature": 2, "threshold": 7, "decision_type": "<=", "left_child": inner, "right_child": leaf[2]}
    assert flat(root) == {
        **{"feature": [2, 4], "threshold": [7.0, 0.5], "left": [1, -1], "right": [-3, -2]},
        "leaf": [1.0, 2.0, 3.0],
    }
    with pytest.raises(ValueError, match="a tree splits by '=='"):
        flat({**root, "decision_type": "=="})

"""No layer is of both parts: among the keys of problems, the committed tables, and the shapes of benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from shape_sets import HELD_OUT, PLAIN, TUNED, cases

from kernelwright.tile_engine.problems.models import PARTS, models
from kernelwright.tile_engine.problems.registry import KEYS, problems
from kernelwright.tile_engine.registry import measurable, operation_of_columns
from kernelwright.tile_engine.results.csv_file import read_columns, read_rows

# Those of `tile-engine bench`, not times that AMD published.
TABLES = sorted(
    path for path in Path(__file__).with_name("results").glob("*.csv.gz") if not path.name.startswith("amd_published_")
)
_FILTER = [f"{word}_{axis}" for word in ("stride", "pad", "dilation") for axis in "dhw"]
# What makes a layer, of operations whose kernels are chosen by shape (not norms); other columns say how many rows,
# images, requests or keys it meets, and in which direction.
LAYER = {
    "gemm": ("n", "k"),
    "convolution": ("c", "k", "g", "di", "hi", "wi", "z", "y", "x", *_FILTER),
    "attention": ("nhead_q", "nhead_k", "hdim_q", "hdim_v", "window_left", "bias", "soft_cap", "sink"),
}
# SigLIP's, which DiT has too: left out of the held-out problems since, so these tables have rows of it. No
# kernel for sm_90a serves its heads, and nothing for CPUs was chosen on tuning problems of attention then.
LEFT_OUT_SINCE = {"attention": {("16", "16", "72", "72", "-1", "none", "0.0", "0")}}
USES = ("prefill", "decode", "backward", "append")
TUNING_WORDS, HELD_OUT_WORDS = ("tuning",), ("held-out", "held_out", "validation", "release")


def layers(operation: str, records: Iterable[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    """The layers of problems, as a table writes them."""
    return {tuple(str(record[column]) for column in LAYER[operation]) for record in records}


def by_key(operation: str, words: Iterable[str]) -> set[tuple[str, ...]]:
    """The layers of the operation's keys that have one of the words. All types of elements have the same layers."""
    keys = [key for key in KEYS if key.endswith("bf16") and any(word in key for word in words)]
    own = [key for key in keys if key.startswith(operation[:4])]
    return set().union(*(layers(operation, problems(measurable(operation), key)) for key in own))


def operation_of_table(path: Path) -> str:
    """By its columns."""
    return operation_of_columns(read_columns(path)).name


@pytest.mark.parametrize("operation", LAYER)
def test_no_held_out_layer_is_a_tuning_layer(operation: str) -> None:
    tuning, held_out = by_key(operation, TUNING_WORDS), by_key(operation, HELD_OUT_WORDS)
    assert len(tuning) > 10 and len(held_out) > 10 and not tuning & held_out


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_a_committed_table_is_of_one_part(path: Path) -> None:
    operation = operation_of_table(path)
    words = (TUNING_WORDS, HELD_OUT_WORDS) if "tuning" in path.name else (HELD_OUT_WORDS, TUNING_WORDS)
    assert any(word in path.name for word in words[0])
    table_layers = layers(operation, read_rows(path)) - LEFT_OUT_SINCE.get(operation, set())
    assert table_layers and not table_layers & by_key(operation, words[1])


def test_shapes_of_benchmarks_are_of_the_same_part() -> None:
    shapes = {part: {(str(c.n), str(c.k)) for what in PLAIN for c in cases(part, what)} for part in (TUNED, HELD_OUT)}
    assert not shapes[TUNED] & by_key("gemm", HELD_OUT_WORDS)
    assert not shapes[HELD_OUT] & by_key("gemm", TUNING_WORDS)


def test_the_guide_counts_the_problems_that_there_are() -> None:
    text = (Path(__file__).parents[1] / "docs/tile_engine.md").read_text("utf-8")
    for part in PARTS:
        families = {model.family for model in models() if model.part == part}
        assert f"| `{part}` | {len(families)} | {count('gemm', f'gemm-{part}-bf16')} |" in text
    uses = {part: [f"attention-{part}-{use}-bf16" for use in USES] for part in PARTS}
    tuning, held_out = (sum(count("attention", key) for key in uses[part]) for part in PARTS)
    assert f"{tuning} problems of a dtype are for tuning, {held_out} held out" in text
    assert f"({count('attention', 'attention-validation-bf16')} held-out problems)" in text
    assert f"({count('attention', 'attention-tuning-all-bf16')})" in text
    assert f"{count('gemm', 'gemm-tuning-tall-bf16')} problems in which slices of K" in " ".join(text.split())
    assert f"`conv-validation-<dtype>` with {count('convolution', 'conv-validation-bf16')} held-out problems" in text


def count(operation: str, key: str) -> int:
    """How many problems a key has."""
    return len(problems(measurable(operation), key))

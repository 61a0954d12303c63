from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import Tree, digest_of, read_model, write_model
from kernelwright.codegen.heuristics.testing.random_model import random_content
from kernelwright.codegen.violations import SpecError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "model.json"
    write_model(random_content(1), file)
    return file


def test_what_is_written_is_read(path: Path) -> None:
    model = read_model(path)
    assert (model.op, model.dtypes, model.arch, len(model.trees)) == ("gemm", ("fp32",), "x86_64_v3", 20)
    row = [1.0] * len(model.features)
    prior = row[model.prior] if model.prior >= 0 else 0.0
    assert model.predict(row) == pytest.approx(prior + sum(tree.value(row) for tree in model.trees))
    assert model.knows({"wgmma": 0.0})  # nothing is said of kernels
    assert model.covers(row) and not model.covers([13.0, *row[1:]])


@settings(deadline=None)  # other builds share the machine
@given(st.data())
def test_a_truncated_model_is_refused(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "m.json")
        write_model(random_content(2, trees=3), file)
        text = file.read_text()
        file.write_text(text[: data.draw(st.integers(0, len(text) - 3))])
        with pytest.raises(SpecError, match="is not JSON"):
            read_model(file)


def altered(path: Path, change: dict[str, Any], honest: bool) -> None:
    content = {**json.loads(path.read_text()), **change}
    if honest:
        content["sha256"] = digest_of(content)
    path.write_text(json.dumps(content))


def test_an_altered_model_is_refused(path: Path) -> None:
    altered(path, {"dtypes": ["bf16"]}, honest=False)
    with pytest.raises(SpecError, match="was altered: its content does not have the sha256 that it states"):
        read_model(path)


def test_kernels_beyond_the_training_data_are_not_known(path: Path) -> None:
    altered(path, {"kernel_hull": {"wgmma": [1.0, 1.0]}}, honest=True)
    model = read_model(path)
    assert model.knows({"wgmma": 1.0}) and not model.knows({"wgmma": 0.0})
    assert "x[FEATURES + 0] >=" in emit(model, "pick")
    altered(path, {"kernel_hull": {"weight": [1.0, 1.0]}}, honest=True)
    with pytest.raises(SpecError, match="kernel_hull has 'weight'; allowed: wgmma"):
        read_model(path)


def test_a_model_of_other_features_is_refused(path: Path) -> None:
    altered(path, {"schema": "0" * 64}, honest=True)
    with pytest.raises(SpecError, match=r"was trained on other features \(0{12}\) than those of gemm now"):
        read_model(path)


@pytest.mark.parametrize("change", [{"format": "pickle"}, {"version": 1}])
def test_another_format_is_refused(path: Path, change: dict[str, Any]) -> None:
    altered(path, change, honest=True)
    with pytest.raises(SpecError, match=r"is no model of format kernelwright.heuristic 2"):
        read_model(path)


@pytest.mark.parametrize(
    "tree",
    [
        {"feature": [0], "threshold": [1.0], "left": [0], "right": [-2], "leaf": [1, 2]},  # leads to itself
        {"feature": [0], "threshold": [1.0], "left": [-1], "right": [-3], "leaf": [1, 2]},  # no such leaf
        {"feature": [99], "threshold": [1.0], "left": [-1], "right": [-2], "leaf": [1, 2]},
        {"feature": [0], "threshold": [], "left": [-1], "right": [-2], "leaf": [1, 2]},
    ],
)
def test_trees_that_could_not_be_walked_are_refused(path: Path, tree: dict[str, Any]) -> None:
    altered(path, {"trees": [tree]}, honest=True)
    with pytest.raises(SpecError, match="a tree whose nodes do not fit together"):
        read_model(path)


_TREE = {"feature": [0], "threshold": [1.0], "left": [-1], "right": [-2], "leaf": [1, 2]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"trees": [{**_TREE, "left": [0.5]}]}, r"trees\.0\.left\.0 = 0\.5"),  # passes between two nodes
        ({"trees": [{**_TREE, "left": [True]}]}, r"trees\.0\.left\.0 = True"),
        ({"trees": [{**_TREE, "left": [-(10**30)]}]}, r"trees\.0\.left\.0"),
        ({"trees": [{**_TREE, "leaf": ["1", 2]}]}, r"trees\.0\.leaf\.0 = '1'"),
        ({"trees": [{**_TREE, "leaf": None}]}, r"trees\.0\.leaf = None"),
        ({"trees": [{**_TREE, "more": []}]}, r"unknown field 'trees\.0\.more'"),
        ({"trees": []}, "trees = "),
        ({"trees": [_TREE] * 10_001}, "trees = "),
        ({"hull": {"log2_m": [0, 1, 2]}}, r"hull\.log2_m"),
        ({"hull": {"system": [0, 1]}}, "hull has 'system'; allowed: log2_m"),
        ({"dtypes": ["float"]}, "dtypes.0 = 'float': should be 'fp32'"),
        ({"dtypes": []}, "dtypes = "),
        ({"arch": "gfx942*/"}, "arch = "),
        ({"op": "sort"}, "no features are known of 'sort'; allowed: attention"),
        ({"op": []}, "op = "),
        ({"provenance": 3}, "provenance = 3"),
    ],
)
def test_values_of_another_type_are_refused(path: Path, change: dict[str, Any], why: str) -> None:
    altered(path, change, honest=True)
    with pytest.raises(SpecError, match=why) as caught:
        read_model(path)
    assert str(path) in str(caught.value) and len(str(caught.value)) < 2000


@pytest.mark.parametrize("token", ["NaN", "Infinity", "1e999"])
def test_numbers_that_c_does_not_have_are_refused(path: Path, token: str) -> None:
    path.write_text(path.read_text().replace('"version": 2', f'"version": {token}'))
    with pytest.raises(SpecError, match=r"model\.json' is not JSON: .*(no number|too large)"):
        read_model(path)


def test_nodes_lead_left_up_to_the_threshold() -> None:
    tree = Tree((0, 1), (2.0, 5.0), (-1, -2), (1, -3), (10.0, 20.0, 30.0))
    assert [tree.value(row) for row in ([2.0, 9.0], [2.1, 5.0], [2.1, 5.1])] == [10.0, 20.0, 30.0]
    assert Tree((), (), (), (), (4.0,)).value([]) == 4.0


def test_c_source_is_the_same_each_time_and_needs_a_c_name(path: Path) -> None:
    model = read_model(path)
    text = emit(model, "pick")
    assert text == emit(model, "pick") and model.digest in text and '"x86_64_v3"' in text
    with pytest.raises(SpecError, match="a heuristic's name is 'a-b'"):
        emit(model, "a-b")

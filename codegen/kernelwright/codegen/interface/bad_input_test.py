"""Whatever JSON comes in: an answer, or an error of ours that says what is wrong; nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright import arch as archs
from kernelwright.arch import ArchError
from kernelwright.arch import model as arch_model
from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.packaging.bundle import respond_bundle
from kernelwright.codegen.selecting.expand import expand_config
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import SpecError

SPEC: dict[str, Any] = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": {"m": 128, "n": 128, "k": 32},
    "wave": [2, 2, 1],
    "warp_tile_m": 32,
    "warp_tile_n": 32,
    "warp_tile_k": 16,
    "pipeline": "compv3",
    "pad": {"m": True, "n": True, "k": False},
    "persistent": False,
}
CONFIG: dict[str, Any] = {
    "op": "gemm",
    "problem": {"dtype": "fp16", "layout": "rcr", "warp_tile": [32, 32, 16], "pipeline": "compv3"},
    "tile_config": {
        "tile_m": {"min": 64, "max": 128, "step": 64, "exclude": [96]},
        "tile_n": {"values": [128]},
        "tile_k": {"values": [32]},
        "wave": {"values": [[2, 2, 1]]},
    },
    "trait_config": {"pad_k": {"values": [True, False]}, "pad_m": [True]},
    "variants": ["standard", "multi_d"],
    "multi_d_config": {"elementwise_ops": ["MultiDAdd"], "num_d_tensors": [1]},
}
LISTED: dict[str, Any] = {
    "stage": "plan",
    "name": "gemm",
    "kernels": [{"arch": "gfx942", "spec": SPEC, "origin": "here"}],
    "filter": "c.tile_m > 1",
    "toolchains": {"host": {"choice": "system", "path": "/usr/bin/g++", "fingerprint": "x"}, "hip": "wheel"},
    "arch_files": [],
}
SETS: dict[str, Any] = {"stage": "expand", "set": "gemm:essential", "archs": ["gfx942", "sm_90a"], "filter": None}
CONFIGURED: dict[str, Any] = {"stage": "expand", "config": CONFIG, "archs": ["gfx942"]}
SPECIFIED: dict[str, Any] = {"stage": "expand", "specs": [SPEC], "archs": ["gfx942"]}
NATIVE: dict[str, Any] = {"stage": "native", "output": "a/libx.so", "sources": ["a/x.c"], "link": ["dl"]}

_words = st.sampled_from(["", "fp16", "gfx942", "m", "tile", "essential", "values", "\0", "ü", "9" * 5000, "../x"])
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | _words | st.just(10**4000)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=3), max_leaves=6
)


@st.composite
def spoiled(draw: st.DrawFn, good: Any) -> Any:
    """``good`` with one to three places replaced, removed or added to."""
    bad = copy.deepcopy(good)
    for _ in range(draw(st.integers(1, 3))):
        place = bad
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or not place[key] or draw(st.booleans()):
                action = draw(st.sampled_from(("replace", "remove", "add")))
                if action == "remove":
                    del place[key]
                elif action == "replace" or isinstance(place, list):
                    place[key] = draw(_values)
                else:
                    place[draw(_words)] = draw(_values)
                break
            place = place[key]
    return bad


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_values | st.sampled_from((LISTED, SETS, CONFIGURED, SPECIFIED, NATIVE)).flatmap(spoiled))
def test_requests(raw: Any) -> None:
    try:
        json.dumps(respond(raw))
    except (SpecError, ArchError) as error:
        assert str(error)


@settings(max_examples=100, deadline=None)
@given(_values | spoiled(SPEC))
def test_specs(raw: Any) -> None:
    try:
        kernel = parse_kernel(raw, archs.load("gfx942"))
        assert parse_kernel(kernel.spec.model_dump(mode="json"), archs.load("gfx942")) == kernel
    except SpecError as error:
        assert str(error) and "pydantic" not in str(error)


@settings(max_examples=100, deadline=None)
@given(_values | spoiled(CONFIG))
def test_configurations(raw: Any) -> None:
    try:
        assert expand_config(raw, archs.load("gfx942")).kernels
    except SpecError as error:
        assert str(error)


@settings(max_examples=150, deadline=None)
@given(_values | spoiled({"library": {"name": "g", "kernels": [{"objects": ["x"]}]}, "sha256": {"x": "1"}}))
def test_bundle_requests(raw: Any) -> None:
    with pytest.raises(SpecError):
        respond_bundle(raw)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_arch_files(tmp_path: Path, data: st.DataObject) -> None:
    good = json.loads((Path(arch_model.__file__).parents[1] / "files/archs/gfx942.json").read_text())
    (tmp_path / "arch.json").write_text(json.dumps(data.draw(_values | spoiled(good))))
    try:
        section = gemm_section(archs.load_file(tmp_path / "arch.json"))
    except ArchError as error:
        assert str(error)
    else:
        assert section.epilogues and section.schedulers


@pytest.mark.parametrize("key", ["archs", "arch_files"])
def test_lists_of_a_request_hold_texts(key: str) -> None:
    request = {"stage": "expand", "set": "gemm:essential", "archs": ["gfx942"], key: [None]}
    with pytest.raises(SpecError, match=f"'{key}' must be a list of texts"):
        respond(request)

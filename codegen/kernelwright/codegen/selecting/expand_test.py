from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.violations import SpecError

GFX942 = archs.load("gfx942")


def config(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "op": "gemm",
        "problem": {"dtype": "fp16", "layout": "rcr"},
        "tile_config": {
            "tile_m": {"values": [128, 64]},
            "tile_n": {"min": 64, "max": 256, "step": 64, "exclude": [192]},
            "tile_k": {"values": [32]},
            "warp_m": {"values": [2]},
            "warp_n": {"values": [2]},
            "warp_k": {"values": [1]},
            "warp_tile": {"values": [[32, 32, 16]]},
        },
        "trait_config": {"pipeline": {"values": ["compv3"]}},
    }
    for key, value in changes.items():
        section, _, field = key.partition("__")
        if field:
            base[section] = {**base[section], field: value}
        else:
            base[section] = value
    return base


MANY = {"min": 1, "max": 1000}


def tiles(raw: object) -> list[tuple[int, int]]:
    return [(gemm_spec(kernel).tile.m, gemm_spec(kernel).tile.n) for kernel in expand_config(raw, GFX942).kernels]


def test_the_product_is_in_the_order_of_fields_and_values() -> None:
    assert tiles(config()) == [(128, 64), (128, 128), (128, 256), (64, 64), (64, 128), (64, 256)]


def test_defaults_are_filled() -> None:
    spec = gemm_spec(expand_config(config(), GFX942).kernels[0])
    assert (spec.dtype_c, spec.dtype_acc, spec.epilogue, spec.scheduler) == ("fp16", "fp32", "cshuffle", "intrawave")
    assert spec.pad.m and spec.pad.n and spec.pad.k and spec.wave.m == 2


def test_illegal_combinations_are_dropped_and_counted() -> None:
    expansion = expand_config(config(tile_config__tile_m={"values": [128, 96, 100]}), GFX942)
    assert len(expansion.kernels) == 3
    assert {"gemm.divisibility": 6, "gemm.tile_limits": 3}.items() <= expansion.dropped.items()


def test_an_empty_expansion_lists_the_top_reasons() -> None:
    with pytest.raises(
        EmptyExpansionError, match=r"none of the 3 combinations.*\n.*3 x gemm.divisibility: tile.m = 96"
    ):
        expand_config(config(tile_config__tile_m={"values": [96]}), GFX942)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "a configuration is an object"),
        (config(extra={}), "unknown section 'extra'"),
        (config(problem=3), "section 'problem' must be an object"),
        (config(problem__dtipe="fp16"), "problem has an unknown field 'dtipe'"),
        (config(problem__dtype="fp17"), "dtype = 'fp17' is unknown .did you mean 'fp16'"),
        (config(problem__tile_k=32), "'tile_k' is given twice"),
        (config(tile_config__tile_m=128), "tile_config.tile_m = 128: write"),
        (config(tile_config__tile_m={"values": []}), "write"),
        (config(tile_config__tile_m={"values": [64, 64]}), "lists 64 twice"),
        (config(tile_config__tile_m={"min": 1}), "write"),
        (config(tile_config__tile_m={"min": 8, "max": 1}), "min <= max"),
        (config(tile_config__tile_m={"min": 1, "max": 8, "step": 0}), "step >= 1"),
        (config(tile_config__tile_m={"min": 1, "max": 2, "exclude": [1, 2]}), "excludes every value"),
        (config(tile_config__tile_m={"min": 1, "max": 2, "exclude": 1}), "write a list"),
        (config(tile_config__tile_m={"min": 1, "max": 10**12}), "more than 1000 values; widen step"),
        (config(tile_config__tile_m={"min": 1, "max": 10**5000}), "more than 1000 values"),
        (config(tile_config__tile_m={"values": list(range(20_000))}), "tile_m lists 20000 values; at most 1000"),
        (config(tile_config__tile_m={"min": 1, "max": 9, "exclude": [1] * 2000}), "exclude lists 2000 values"),
        (config(tile_config__tile_m=MANY, tile_config__tile_k=MANY), "has 3000000 combinations; at most"),
        (config(variants=["multi_d"], multi_d_config={"num_d_tensors": list(range(2000))}), "at most 1000"),
        (config(variants=["multi_d"], multi_d_config={"num_d_tensors": [1, 1]}), "lists 1 twice"),
        (
            config(variants=["multi_d"], tile_config__tile_m=MANY, tile_config__tile_k={"min": 1, "max": 100}),
            "combinations; at most",
        ),
        (config(tile_config__tile_m={"values": ["a"]}), "tile.m = 'a'"),
        (config(problem__op="conv"), "op is 'gemm' and in problem 'conv'; keep one of them"),
        ({"problem": {"dtype": "fp16"}}, 'a configuration must state its operation; add "op": "gemm"'),
        ({"op": "conv"}, "unknown operation op = 'conv'; allowed: gemm"),
    ],
)
def test_malformed_configurations_are_refused(raw: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        expand_config(raw, GFX942)


def test_json_files_are_read_with_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cannot read .*: No such file"):
        read_json(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(SpecError, match="is not JSON"):
        read_json(tmp_path / "bad.json")
    (tmp_path / "twice.json").write_text('{"op": "gemm", "op": "gemm"}')
    with pytest.raises(SpecError, match=r"twice\.json' is not JSON: the key 'op' is given twice in one object"):
        read_json(tmp_path / "twice.json")


def test_long_lists_are_refused_at_once() -> None:
    start = time.process_time()
    raw = config(tile_config__tile_m={"values": list(range(100_000))})
    with pytest.raises(SpecError) as caught:
        expand_config(raw, GFX942)
    assert time.process_time() - start < 0.5 and len(str(caught.value)) < 200

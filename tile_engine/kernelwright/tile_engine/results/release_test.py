from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.codegen.selecting.expand import expand_config
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.results.analysis import timed
from kernelwright.tile_engine.results.release import add_to_rule_set, choose_release, entry

SM_90A = load("sm_90a")
KERNELS = [kernel for kernel in expand_set("essential", SM_90A).kernels if "_bf16_" in kernel.name]


def cells(identity: str, problem: int, ms: float) -> dict[str, str]:
    row = {"kernel": f"k{identity}", "identity": identity, "problem_idx": str(problem), "latency_ms": str(ms)}
    return {**row, "status": "ok", "selected": "", "dtype": "bf16", "arch": "sm_90a", "device": "d", "date": "t"}


def test_kernels_are_added_until_the_share_is_reached() -> None:
    times = timed([cells("a", 0, 1), cells("a", 1, 2), cells("b", 1, 1), cells("c", 1, 1.01)])
    cost = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert [step.identity for step in choose_release(times, cost, 0.6, None).steps] == ["a"]
    both = choose_release(times, cost, 0.99, None)
    assert [step.identity for step in both.steps] == ["a", "b"] and both.problems == 2
    with pytest.raises(ValueError, match=r"1 kernels reach 0.7071 of the fastest kernels' speed, below 0.99"):
        choose_release(times, cost, 0.99, 1)
    with pytest.raises(ValueError, match="hold no time"):
        choose_release([], cost, 0.9, None)


@pytest.mark.parametrize("kernel", expand_set("essential", SM_90A).kernels, ids=lambda kernel: str(kernel.name))
def test_an_entry_is_its_kernel(kernel: object) -> None:
    spec = kernel.spec.model_dump(mode="json")  # type: ignore[attr-defined]
    assert expand_config(json.loads(json.dumps(entry(spec))), SM_90A).kernels == (kernel,)


def test_another_type_gets_the_same_tiles() -> None:
    spec = KERNELS[0].spec.model_dump(mode="json")
    (other,) = expand_config(entry(spec, "bf16", "fp16"), SM_90A).kernels
    assert other.name == KERNELS[0].name.replace("bf16", "fp16") and entry(spec, "fp8", "fp16") == entry(spec)


def test_a_rule_set_gets_each_kernel_once(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    entries = [entry(kernel.spec.model_dump(mode="json")) for kernel in KERNELS]
    assert add_to_rule_set(path, "sm_90a", entries) == add_to_rule_set(path, "sm_90a", entries) == len(KERNELS) == 2
    assert add_to_rule_set(path, "gfx942", entries[:1]) == 1
    assert {name: len(listed) for name, listed in json.loads(path.read_text()).items()} == {"gfx942": 1, "sm_90a": 2}


def test_the_command_writes_the_choice_and_where_it_is_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (kernel.identity for kernel in KERNELS)
    rows = [cells(first, 0, 1), cells(second, 0, 3), cells(first, 1, 3), cells(second, 1, 1)]
    table, library, out, into = (tmp_path / name for name in ("t.csv", "manifest.json", "out.json", "release.json"))
    table.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")
    listed = [{"identity": one.identity, "spec": one.spec.model_dump(mode="json")} for one in KERNELS]
    library.write_text(json.dumps({"arch": "sm_90a", "kernels": listed}))
    given = ["--table", str(table), "--library", str(library), "--arch", "sm_90a", "--dtype", "bf16"]
    assert main(["release", *given, "--output", str(out), "--into", str(into)]) == 0
    content = json.loads(out.read_text())
    assert {one["identity"] for one in content["kernels"]} == {first, second} and content["problems"] == 2
    assert content["kernels"][-1]["efficiency"] == pytest.approx(1.0) and content["device"] == ["d"]
    assert len(json.loads(into.read_text())["sm_90a"]) == 2
    assert "1.0000 mean" in capsys.readouterr().out
    library.write_text('{"arch": "sm_90a", "kernels": []}')
    assert main(["release", *given, "--output", str(out)]) == 2 and "no library holds" in capsys.readouterr().err

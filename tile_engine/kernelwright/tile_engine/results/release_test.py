from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.selecting.expand import expand_config
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.results.analysis import timed
from kernelwright.tile_engine.results.release import add_to_rule_set, choose_release, entry

SM_90A = load("sm_90a")
KERNELS = [kernel for kernel in expand_set("gemm:essential", SM_90A).kernels if "_bf16_" in kernel.name][:2]


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


def test_kernels_that_are_there_anyway_are_no_steps() -> None:
    times = timed([cells("a", 0, 1), cells("a", 1, 4), cells("b", 0, 2), cells("b", 1, 2), cells("c", 1, 1)])
    cost = {"a": 1.0, "b": 1.0, "c": 1.0}
    release = choose_release(times, cost, 0.99, None, ["a"])
    assert release.start == pytest.approx(0.5) and [step.identity for step in release.steps] == ["c"]
    assert release.steps[0].efficiency == pytest.approx(1) and release.steps[0].cost == 1
    assert choose_release(times, cost, 0.5, None, ["a"]).steps == ()


def test_companions_count_as_kernels() -> None:
    rows = [cells("a", 0, 4), {**cells("b", 0, 1), "stages": "combine"}, cells("a", 1, 1)]
    cost = {"a": 1.0, "b": 1.0, "combine": 1.0}
    assert [step.companions for step in choose_release(timed(rows), cost, 0.99, 3).steps] == [(), ("combine",)]
    with pytest.raises(ValueError, match=r"2 kernels reach 0\.5000"):
        choose_release(timed(rows), cost, 0.99, 2)


@pytest.mark.parametrize("kernel", expand_set("gemm:essential", SM_90A).kernels, ids=lambda kernel: str(kernel.name))
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
    assert add_to_rule_set(path, "gfx942", entries) == 2
    assert add_to_rule_set(path, "gfx942", entries[:1], anew=True) == 1
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


def test_a_release_of_attention_holds_every_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arch = load("x86_64_v3")
    listed = expand_set("attention:essential", arch).kernels

    def first(family: str) -> Kernel:
        return next(one for one in listed if one.name.startswith(f"fmha_{family}_fp32_"))

    split, combine, whole = (first(family) for family in ("fwd_splitkv", "fwd_splitkv_combine", "fwd"))
    place = {"dtype": "fp32", "arch": "x86_64_v3"}
    rows = [
        {**cells(split.identity, 0, 1), **place, "auxiliary": "", "stages": combine.identity},
        {**cells(combine.identity, 0, 1), **place, "auxiliary": "1", "stages": split.identity},
        {**cells(whole.identity, 0, 9), **place, "auxiliary": "", "stages": ""},
    ]
    table, library, out, chosen = (tmp_path / name for name in ("t.csv", "specs.json", "out.json", "chosen.json"))
    library.write_text(json.dumps([kernel.spec.model_dump(mode="json") for kernel in (split, combine, whole)]))

    def write(columns: Collection[str]) -> None:
        table.write_text(
            "\n".join(",".join(line) for line in (columns, *([row[c] for c in columns] for row in rows))) + "\n"
        )

    write(list(rows[0]))
    given = ["--table", str(table), "--library", str(library), "--arch", "x86_64_v3", "--dtype", "fp32"]
    assert main(["release", *given, "--reach", "0.99", "--output", str(out), "--specs", str(chosen)]) == 0
    assert f"{split.identity} with {combine.name}" in capsys.readouterr().out
    (step,) = json.loads(out.read_text())["kernels"]
    assert [one["identity"] for one in step["companions"]] == [combine.identity]
    (selection,) = select("specs", str(chosen), ["x86_64_v3"], load_archs())
    assert {kernel.identity for kernel in selection.kernels} == {split.identity, combine.identity}
    assert main(["release", *given, "--output", str(out), "--into", str(tmp_path / "r.json")]) == 2
    assert "--into writes rule sets of GEMM, not of attention; take --specs" in capsys.readouterr().err
    write([name for name in rows[0] if name != "stages"])
    assert main(["release", *given, "--output", str(out)]) == 2
    assert "does not say which kernels such as" in capsys.readouterr().err

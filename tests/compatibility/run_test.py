"""The script of the page's table, with a launcher that plays Pants."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from compatibility import run, table
from e2e.launcher import ROOT

PAGE = (ROOT / "docs/compatibility.md").read_text()
# Answers as Pants does, but for what FAULT names.
PLAYED = """\
#!{python}
import os, sys
from pathlib import Path

fault, words = os.environ.get("FAULT"), [word for word in sys.argv[1:] if not word.startswith("--problems")]
out, stay = Path("dist/k/lib/x86_64_v3"), Path("sandbox")
if words == ["--version"]:
    print("2.99.1")
elif words == ["help", "kernel_library"]:
    print("" if fault == "help" else "library_name ...")
elif words == ["kernels", "k:"]:
    print("x86_64_v3 gemm_fp32_rrr_x " + "a" * (63 if fault == "kernels" else 64))
elif words == ["check", "k:lib"]:
    print("10:11:12.13 [INFO] Building liblib.so for x86_64_v3: 1 kernel", file=sys.stderr)
    if fault == "quiet":
        print("10:11:12.13 [INFO] Completed: Compile the kernel", file=sys.stderr)
    print("nothing" if fault == "check" else "k:lib x86_64_v3: 1 kernels", file=sys.stderr)
elif words == ["package", "k:lib"]:
    if not out.exists() or fault == "again":
        stay.mkdir(exist_ok=True)
        kept = f'Preserving local process execution dir {{stay.resolve()}} for "Compile a"'
        print(f"10:11:12.13 [INFO] {{kept}}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("liblib.so", "manifest.json", "provenance.json")[fault == "package" :]:
        (out / name).touch()
    print("10:11:12.13 [INFO] Wrote dist/k/lib/x86_64_v3/liblib.so", file=sys.stderr)
elif words == ["bench", "k:lib"]:
    Path("dist/bench").mkdir()
    Path("dist/bench/k.lib.csv").write_text("status\\n" + ("refused" if fault == "bench" else "ok") + "\\n")
    print("1 rows written to dist/bench/k.lib.csv")
elif words == ["--kernels-filter=c.tile_n > 999", "kernels", "k:"]:
    print("no kernel passes the filter c.tile_n > 999", file=sys.stderr)
    sys.exit(1 if fault == "filter" else 2)
else:
    sys.exit(f"unknown {{words}}")
"""


@pytest.fixture
def pants(tmp_path: Path) -> Path:
    program = tmp_path / "pants"
    program.write_text(PLAYED.format(python=sys.executable))
    program.chmod(0o755)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/kernelwright_pants-1.0-py3-none-any.whl").write_bytes(b"wheel")
    return program


def test_a_run_that_passes_is_recorded_beside_others(pants: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = pants.with_name("results.json")
    results.write_text('{"2.100.0": {}, "2.17.1": {}}')
    words = [str(pants), "--wheels", str(pants.with_name("wheels")), "--record", str(results)]
    assert run.main(words) == 0
    recorded = json.loads(results.read_text())
    assert list(recorded) == ["2.17.1", "2.99.1", "2.100.0"]
    one = recorded["2.99.1"]
    assert one == json.loads(capsys.readouterr().out)["2.99.1"]
    assert one["kernel"] == "a" * 64 and len(one["wheels"]["kernelwright_pants"]) == 64
    assert [command["processes"] for command in one["commands"]] == [0, 0, 0, 1, 0, 0, 0]
    assert one["commands"][3]["stderr"] == ["[INFO] Wrote dist/k/lib/x86_64_v3/liblib.so"]


@pytest.mark.parametrize(
    ("fault", "step", "why"),
    [
        ("help", "help kernel_library", "no help of the target's fields"),
        ("kernels", "kernels k:", "not one line of one kernel"),
        ("check", "check k:lib", "does not tell of one kernel"),
        ("package", "package k:lib", "dist/k/lib/x86_64_v3 has"),
        ("quiet", "check k:lib", "1 lines tell that the library is built, 1 tell of compiles"),
        ("again", "package k:lib again", "processes ran: Compile a"),
        ("bench", "bench --problems=p.json k:lib", "rows have the status ['refused']"),
        ("filter", "--kernels-filter='c.tile_n > 999' kernels k:", "exit code 1, not 2"),
    ],
)
def test_each_command_can_fail(
    pants: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: str, step: str, why: str
) -> None:
    monkeypatch.setenv("FAULT", fault)
    results = pants.with_name("results.json")
    assert run.main([str(pants), "--wheels", str(pants.with_name("wheels")), "--record", str(results)]) == 1
    assert not results.exists()
    said = json.loads(capsys.readouterr().out)["2.99.1"]["commands"]
    wrong = {command["command"]: command["wrong"] for command in said if command["wrong"]}
    assert why in wrong[step]
    assert set(wrong) <= {step, "package k:lib again"}  # without its files, the second one is wrong as well


def test_the_page_has_a_workspace_and_commands_of_which_something_is_expected() -> None:
    page = table.read(PAGE)
    assert set(page.files) == {"pants.toml", "k/BUILD", "p.json"}
    assert page.steps[-1].arguments == ("--kernels-filter=c.tile_n > 999", "kernels", "k:")
    with pytest.raises(ValueError, match="nothing is expected of 'kernels --count k:'"):
        table.read(PAGE.replace("`pants kernels k:`", "`pants kernels --count k:`"))
    with pytest.raises(ValueError, match="the page has"):
        table.read(PAGE.replace("| `pants check k:lib`", "| `check k:lib`"))


def test_recorded_versions_are_those_that_the_page_says_were_executed() -> None:
    recorded = json.loads((ROOT / "benchmarks/results/pants_versions.json").read_text())
    assert "2.17.1" in recorded
    for version, result in recorded.items():
        assert f"\n| {version} |" in PAGE
        assert [command["command"] for command in result["commands"]] == list(table.EXPECTED)
        assert all(command["wrong"] is None for command in result["commands"])
    assert len({result["kernel"] for result in recorded.values()}) == 1

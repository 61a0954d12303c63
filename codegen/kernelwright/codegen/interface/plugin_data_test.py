from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from kernelwright.codegen.building.memory import SCRIPT, script_without_comments
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.interface.plugin_data import build_fields, plugin_data, plugin_data_text
from kernelwright.codegen.operations.gemm.spec import Extent, GemmSpec, Padding

CHECKED_IN = Path(__file__).parents[4] / "rules/kernelwright/pants/data/generator.json"


def test_the_checked_in_document_is_current() -> None:
    command = "PYTHONPATH=arch:codegen python -m kernelwright.codegen plugin-data"
    assert CHECKED_IN.read_text() == plugin_data_text(), f"write it anew: {command} > rules/…/data/generator.json"


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin-data"]) == 0
    assert capsys.readouterr().out == plugin_data_text()


def test_every_field_of_the_spec_is_a_build_field_with_help() -> None:
    fields = {field["name"]: field for field in plugin_data()["operations"]["gemm"]["fields"]}
    assert list(fields) == ["dtype", *(name for name in GemmSpec.model_fields if name != "op")]
    for name, field in fields.items():
        assert field["help"].endswith("."), name
    assert fields["layout"]["allowed"] == ["rcr", "rrr", "crr", "ccr"]
    assert fields["tile"]["axes"] == ["m", "n", "k"] and fields["tile"]["minimum"] == 1
    assert fields["pad"]["kind"] == "bools" and fields["persistent"]["kind"] == "bool"
    assert (fields["num_d"]["minimum"], fields["num_d"]["maximum"]) == (0, 4)


@pytest.mark.parametrize("model", [GemmSpec, Extent, Padding])
def test_every_field_is_described(model: type[BaseModel]) -> None:
    assert all(info.description for info in model.model_fields.values())


def test_a_type_without_a_build_field_is_refused() -> None:
    class Odd(BaseModel):
        when: float = Field(description="A time.")

    with pytest.raises(TypeError, match="field when is of the type"):
        build_fields(Odd)


def test_trees_list_patterns_of_files() -> None:
    trees = plugin_data()["trees"]
    assert trees["abi"] == {
        "about": "the C ABI that all operations share",
        "origin": "headers",
        "backend": None,
        "licensed": True,
        "globs": [f"include/kernelwright/{name}.h" for name in ("abi", "checks", "dtypes", "epilogue")],
    }
    assert trees["cpu_gemm"]["backend"] == "cpu" and trees["flashinfer"]["licensed"] and not trees["zig"]["licensed"]
    assert trees["cpu_gemm"]["globs"] == ["include/kernelwright/cpu/gemm/**"]
    assert trees["zig"]["origin"] == "wheel"


def test_the_script_of_memory_slots_is_that_of_the_local_executor() -> None:
    assert plugin_data()["slots"] == script_without_comments(SCRIPT.read_text())


def test_an_edited_comment_of_the_script_changes_no_command() -> None:
    text = SCRIPT.read_text()
    edited = text.replace("# Memory slots:", "# Slots\n#\n# of memory:")
    edited = edited.replace(" # MEMBERSHIP GROUPS", "  # what it reads")
    assert edited.count("# of memory:") == edited.count("# what it reads") == 1
    assert script_without_comments(edited) == script_without_comments(text)
    assert script_without_comments(text.replace("sleep 0.1", "sleep 0.2")) != script_without_comments(text)


def test_what_is_left_of_a_script_does_the_same(tmp_path: Path) -> None:
    written = "a \"b # c\" # d\n\n  # e\nf '# g' ${h#*.} $# # 'i'\n"
    assert script_without_comments(written) == "a \"b # c\"\nf '# g' ${h#*.} $#\n"
    short = tmp_path / "slots.sh"
    short.write_text(script_without_comments(SCRIPT.read_text()))
    budgets = [subprocess.check_output(["/bin/sh", "-e", path, "budget"], text=True) for path in (SCRIPT, short)]
    assert budgets[0] == budgets[1] and int(budgets[0]) > 0
    assert len(short.read_text()) < len(SCRIPT.read_text()) / 2

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.simulator.run.device import Settings, settings
from kernelwright.simulator.tools.cli import main

PROGRAM = """
import sys
from kernelwright.simulator.run.device import settings
from beside import value
current = settings()
print(sys.argv[1:], value, current.checks.waits, current.checks.races, current.checks.seeds, current.instruction_limit)
print(__name__, current.processes)
if "stop" in sys.argv:
    sys.exit(7)
if "fail" in sys.argv:
    raise OSError("no such thing")
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "beside.py").write_text("value = 5\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    return str(tmp_path / "program.py")


def test_a_program_runs_with_the_options(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--check", "waits", "--seeds", "3", "--instruction-limit", "1000", "--processes", "2"]
    assert main(["run", *options, program, "--device", "sim:gfx942"]) == 0
    expected = "['--device', 'sim:gfx942'] 5 True False (0, 1, 2) 1000\n__main__ 2\n"
    assert capsys.readouterr().out == expected
    assert settings() == Settings()


def test_without_options_nothing_is_checked_or_limited(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", program]) == 0
    assert capsys.readouterr().out.startswith("[] 5 False False () None\n")
    assert main(["run", "--check", "all", program]) == 0
    assert capsys.readouterr().out.startswith("[] 5 True True () None\n")


def test_the_status_is_the_programs(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["run", program, "stop"])
    assert stop.value.code == 7
    assert main(["run", program, "fail"]) == 1
    assert "OSError: no such thing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--seeds 2 PROGRAM", "--seeds 2: seeds repeat a launch for its checks"),
        ("--seeds 0 --check races PROGRAM", "'0' is not an integer from 1 on"),
        ("--instruction-limit -1 PROGRAM", "--instruction-limit: "),
        ("--check speed PROGRAM", "invalid choice: 'speed'"),
        ("/nowhere.py", "/nowhere.py is not a file"),
    ],
)
def test_wrong_use_is_2(line: str, reason: str, program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *line.replace("PROGRAM", program).split()]) == 2
    assert reason in capsys.readouterr().err

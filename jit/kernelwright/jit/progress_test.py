from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.execute import ActionError, Watcher
from kernelwright.jit.progress import Lines, display

ACTIONS = [Action(name, f"Compile {name}", ("true",), (), (name,), seconds=4) for name in ("one", "two", "three")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def play(watcher: Watcher, actions: Sequence[Action] = ACTIONS) -> None:
    one, two, three = actions
    watcher.planned(actions, {action: action.seconds for action in actions})
    watcher.ended(one, True)
    watcher.started(two)
    watcher.started(three)
    watcher.ended(two, False)
    watcher.failed(ActionError(three, "failed with exit code 1", "error: no"))


@pytest.mark.parametrize(("wanted", "ends"), [(None, []), (True, ["[2/3] Compile two"])])
def test_lines_where_there_is_no_terminal(wanted: bool | None, ends: list[str]) -> None:
    stream = io.StringIO()
    with display("jit for gfx942", wanted, stream) as watcher:
        play(watcher)
    first, *middle, last = stream.getvalue().splitlines()
    assert first == "building jit for gfx942: 3 steps, at most 12 processor seconds"
    assert middle == [*ends, "[3/3] Compile three: failed with exit code 1"]
    assert last.startswith("jit for gfx942: 2 of 3 steps run in ")


def test_commands_that_end_are_at_most_one_line_a_second() -> None:
    stream, seconds = io.StringIO(), iter([0.0, *(n / 4 for n in range(1000))])
    actions = [Action(str(n), f"Compile {n}", ("true",), (), (str(n),), seconds=4) for n in range(40)]
    watcher = Lines("jit", stream, 1.0, lambda: next(seconds))
    watcher.planned(actions, dict.fromkeys(actions, 4.0))
    for action in actions:
        watcher.started(action)
        watcher.ended(action, False)
    shown = [line for line in stream.getvalue().splitlines() if line.startswith("[")]
    assert 5 < len(shown) < 14 and shown[-1].startswith("[")


@pytest.mark.parametrize(("wanted", "stream"), [(False, io.StringIO()), (False, Terminal())])
def test_nothing_unless_wanted(wanted: bool | None, stream: io.StringIO) -> None:
    with display("jit", wanted, stream) as watcher:
        play(watcher)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_nothing_where_all_is_cached(stream: io.StringIO) -> None:
    with display("jit", True, stream) as watcher:
        watcher.planned(ACTIONS, {action: 1 for action in ACTIONS})
        for action in ACTIONS:
            watcher.ended(action, True)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_bar_on_terminals(monkeypatch: pytest.MonkeyPatch, no_color: str) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with display("jit for gfx942", None, stream) as watcher:
        play(watcher)
    shown = stream.getvalue()
    assert "jit for gfx942" in shown and "Compile" in shown and "100%" in shown
    assert ("\x1b[38" in shown) == (not no_color)


def test_lines_on_terminals_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    with display("jit", None, Terminal()) as watcher:
        assert isinstance(watcher, Lines)

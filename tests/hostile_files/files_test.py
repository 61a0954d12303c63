"""Whatever a file holds: exit code 0, or 2 and one message; no traceback, no defect, nothing of the file in a source.

``KERNELWRIGHT_FUZZ=3000`` draws as many mutations of each kind of file (CI draws fewer), and ``KERNELWRIGHT_FUZZ=long``
1,500 of each kind of trace, 6,000 of each kind of problem and 300 of others. Seeds are fixed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile_files.mutations import MARK, mutations
from hostile_files.targets import TARGETS, lay_out
from kernelwright.arch import model as arch_model
from kernelwright.codegen.interface.cli import main as kernelwright
from kernelwright.dispatch.testdata.mocks import native_library
from kernelwright.tile_engine.interface.cli import main as tile_engine

PROGRAMS = {"kernelwright": kernelwright, "tile-engine": tile_engine}
COUNT = os.environ.get("KERNELWRIGHT_FUZZ", "")
BRIEF, LONG = {"model": 200}, {"trace": 1500, "problems": 6000}
OTHERS = {"": 60, "long": 300}
SLOWEST_S = 60.0
"""Seconds until a command is ended. The slowest takes 3 s on an idle machine: it expands tables of an operation."""
LONGEST = 20_000
"""Characters of a message: ten problems of a request, each as long as a message may be."""


@pytest.fixture(scope="module", autouse=True)
def dispatcher() -> None:
    native_library()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "from").mkdir()
    monkeypatch.chdir(tmp_path / "from")  # requests name outputs that are relative
    yield tmp_path / "work"
    arch_model._registered.clear()


class TooSlowError(BaseException):
    """No ``Exception``: a command would take it for a defect of its own and go on."""


@contextlib.contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """TooSlowError inside of what takes longer."""

    def end(number: int, frame: object) -> None:
        raise TooSlowError(f"a command takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(name: str, folder: Path, text: bytes, megabytes: int = 0) -> tuple[int, str]:
    """Exit code and standard error of a target's command on a file with this text, or of so many megabytes."""
    target = TARGETS[name]
    arch_model._registered.clear()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    arguments = lay_out(target, folder, text)
    if megabytes:
        os.truncate(folder / target.name, megabytes << 20)
    out, err = io.StringIO(), io.StringIO()
    with ended_after(SLOWEST_S), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = PROGRAMS[target.program](arguments)
    return code, err.getvalue()


def sources(folder: Path) -> Iterator[str]:
    """Generated texts and commands: files that were written, and those that a response holds."""
    for path in folder.rglob("*"):
        if path.suffix in (".c", ".hpp", ".S", ".ninja"):
            yield path.read_text("utf-8")
    response = folder / "response.json"
    if response.is_file() and isinstance(content := json.loads(response.read_text()), dict):
        for holder in (content, *content.get("libraries", ())):
            yield from (file["text"] for file in holder.get("files", ()) if isinstance(file, dict))
            yield from (" ".join(action["argv"]) for action in holder.get("actions", ()))


def drawn(name: str) -> int:
    """How many mutations of a target: by a word of its name."""
    if COUNT not in OTHERS:
        return int(COUNT)
    counts = (count for word, count in (LONG if COUNT else BRIEF).items() if word in name.split())
    return next(counts, OTHERS[COUNT])


@pytest.mark.parametrize("name", TARGETS)
def test_the_good_file_is_accepted(name: str, folder: Path) -> None:
    code, message = run(name, folder, json.dumps(TARGETS[name].good).encode())
    assert code == 0, message


def test_a_command_that_does_not_end_is_ended() -> None:
    with pytest.raises(TooSlowError, match=r"more than 0\.05 s"), ended_after(0.05):
        while True:
            pass


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize("name", TARGETS)
def test_mutations_end_with_0_or_2(name: str, folder: Path) -> None:
    target, codes = TARGETS[name], Counter[int]()
    count = drawn(name)
    for number, text in enumerate(mutations(5, count, target.good, target.written)):
        begin = time.monotonic()
        try:
            code, message = run(name, folder, text)
        except BaseException as error:
            raise AssertionError((name, number, text[:2000])) from error
        about = (name, number, text[:2000], message[-2000:])
        codes[code] += 1
        assert code in (0, 2), about
        assert time.monotonic() - begin < SLOWEST_S, about
        assert "Traceback" not in message and "defect" not in message and "pydantic" not in message, about
        if code == 2:
            assert message.startswith("error: ") and len(message) < LONGEST, about
            assert all(line.isprintable() for line in message.splitlines()), about
        else:
            assert not any(MARK in made for made in sources(folder)), about
    print(f"{name}: {codes[2]} refused, {codes[0]} accepted")
    assert codes[2] > count / 3


@pytest.mark.parametrize("name", TARGETS)
def test_files_of_200_megabytes_are_refused_at_once(name: str, folder: Path) -> None:
    begin = time.monotonic()
    code, message = run(name, folder, b"{}", megabytes=200)
    assert code == 2 and "bytes; allowed: at most that many" in message, (code, message[:500])
    assert time.monotonic() - begin < SLOWEST_S

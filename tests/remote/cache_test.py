"""A machine that has nothing gets every header, object and library from the cache, and unpacks no compiler; workers
that share the cache's store build the same bytes.

Needs the launcher and the package registry, which holds the servers too: ``PYTHONPATH=tests python -m pytest
tests/remote``. The slow ones build all shipped libraries.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e import launcher
from remote import kernels, record, servers
from remote.machine import Build, Machine, size_of

SLOW = pytest.mark.slow
# How the actions of plans are called; the rest are calls of the generator and toolchains.
ACTIONS = ("Assemble", "Compile", "Describe gemm_", "Embed", "Link")


@dataclass(frozen=True)
class Case:
    """``timeout`` is for one build, in seconds: a hang ends the test, a busy machine does not."""

    name: str
    server: str
    target: str
    timeout: float = 1800

    @property
    def folder(self) -> str:
        """Where its libraries are below ``dist``."""
        return self.target.replace(":", "/")


CASES = [
    pytest.param(Case("casd-small", "casd", "t:lib"), id="casd-small"),
    pytest.param(Case("buildgrid-small", "buildgrid", "t:lib"), id="buildgrid-small", marks=SLOW),
    # An hour and a half of compiling on one core, longer beside other work.
    pytest.param(Case("casd-every", "casd", "kernels/gemm:gemm", 6 * 3600), id="casd-every", marks=SLOW),
]


@dataclass
class Pair:
    """Two machines that share nothing but a cache and have built the target: ``second`` with empty local caches.

    ``kept``: the cache is not new, since an earlier run that was stopped has filled a part of it.
    """

    case: Case
    address: str
    kept: bool
    first: Machine
    second: Machine
    builds: tuple[Build, Build]

    @property
    def outputs(self) -> dict[str, bytes]:
        """What the first machine has built."""
        return self.first.outputs(self.case.folder)


def _store(case: Case, folder: Path) -> Path:
    """The server's store: for cases of hours in ``KERNELWRIGHT_REMOTE_STORE``, so that a stopped run can go on."""
    kept = os.environ.get("KERNELWRIGHT_REMOTE_STORE")
    return Path(kept, case.name, "server") if kept and case.timeout > 3600 else folder / "server"


@pytest.fixture(scope="module", params=CASES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    case: Case = request.param
    folder = tmp_path_factory.mktemp(case.name)
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    store = _store(case, folder)
    kept = store.exists()
    store.parent.mkdir(parents=True, exist_ok=True)
    workers = case.server == "casd" and servers.bubblewrap() is not None
    with getattr(servers, "workers" if workers else case.server)(store) as address:
        first = Machine(folder, "first", address)
        second = Machine(folder, "second", address, stranger=True, other_user=True)
        builds = []
        for machine, options in ((first, ["--remote-cache-write"]), (second, [])):
            machine.write("t/BUILD", kernels.small(256))
            builds.append(machine.pants(*options, "package", case.target, timeout=case.timeout))
            assert builds[-1].exit_code == 0, builds[-1].log
        pair = Pair(case, address, kept, first, second, (builds[0], builds[1]))
        figures = {"first": record.build(builds[0]), "second": record.build(builds[1])}
        figures["second"]["store_mb"] = round(size_of(second.store) / 1e6, 1)
        record.write(case.name, {**figures, "libraries": record.libraries(pair.outputs)})
        yield pair


def test_the_first_build_fills_the_cache(pair: Pair) -> None:
    stats = pair.builds[0].stats
    assert pair.kept or stats["remote_cache_requests_cached"] == 0
    assert stats["remote_cache_write_successes"] == stats["remote_cache_write_attempts"]
    assert stats["remote_cache_write_attempts"] + stats["remote_cache_requests_cached"] > 20


def test_every_action_comes_from_the_cache(pair: Pair) -> None:
    stats, ran = pair.builds[1].stats, pair.builds[1].ran
    assert ran == ()
    assert stats["local_execution_requests"] == 0
    assert stats["local_cache_requests_cached"] == 0
    assert stats["remote_cache_requests_cached"] == stats["remote_cache_requests"] > 20
    assert stats["remote_cache_write_attempts"] == 0


def test_the_results_are_the_same_bytes(pair: Pair) -> None:
    outputs = pair.outputs
    names = {path.split("/")[1] for path in outputs}
    assert len(names) == 3 and {"manifest.json"} < names, outputs.keys()
    assert pair.second.outputs(pair.case.folder) == outputs


def test_no_wheel_is_unpacked_and_nothing_of_a_compiler_is_fetched(pair: Pair) -> None:
    assert not (pair.second.named / "kernelwright_wheels").exists()
    plugin = size_of(launcher.shelf()) if launcher.named() else 0
    assert plugin or not (pair.second.named / "pex_root").exists()  # Pex loads a plugin from wheels
    fetched = size_of(pair.second.store) - plugin
    assert fetched < 20e6 + sum(map(len, pair.outputs.values()))


def test_workers_build_the_same_bytes_once(pair: Pair) -> None:
    if pair.case.server != "casd":
        pytest.skip(f"{pair.case.server} stores and executes nothing")
    if servers.bubblewrap() is None:
        pytest.skip("no bwrap works on this machine, and the workers' sandbox needs one")
    there = Machine(pair.first.home.parent, "there", pair.address, stranger=True)
    there.write("t/BUILD", kernels.small(256))
    remote = ["--pants-config-files=pants.remote.toml", f"--remote-execution-address=grpc://{pair.address}"]
    built = there.pants(*remote, "package", pair.case.target, timeout=pair.case.timeout)
    assert built.exit_code == 0, built.log
    record.write(f"{pair.case.name} on workers", {"there": record.build(built)})
    assert built.ran == ()  # nothing on this machine: plans and toolchains come from the cache, the rest from workers
    assert built.stats["remote_execution_requests"] == built.stats["remote_execution_success"]
    assert built.stats["remote_cache_requests"] == pair.builds[1].stats["remote_cache_requests"]
    executed = built.stats["remote_execution_requests"]
    assert executed + built.stats["remote_cache_requests_cached"] == built.stats["remote_cache_requests"]
    if not pair.kept:
        actions = [what for what in pair.builds[0].ran if what.startswith(ACTIONS)]
        assert all(any(what.startswith(kind) for what in actions) for kind in ACTIONS)
        assert executed == len(actions)
    assert there.outputs(pair.case.folder) == pair.outputs
    again = Machine(pair.first.home.parent, "again", pair.address, stranger=True)
    again.write("t/BUILD", kernels.small(256))
    rebuilt = again.pants(*remote, "package", pair.case.target, timeout=pair.case.timeout)
    assert rebuilt.exit_code == 0, rebuilt.log
    assert rebuilt.stats["remote_cache_requests_cached"] == rebuilt.stats["remote_cache_requests"] > 20
    assert rebuilt.stats["remote_execution_requests"] == 0
    assert again.outputs(pair.case.folder) == pair.outputs


@SLOW
def test_a_new_kernel_is_compiled_with_the_compiler_from_the_cache(pair: Pair) -> None:
    if pair.case.target != "t:lib":
        pytest.skip("the small library tells it: no other kernel of it has changed")
    third = Machine(pair.first.home.parent, "third", pair.address, stranger=True)
    third.write("t/BUILD", kernels.small(secrets.randbelow(900) + 300))
    changed = third.pants("package", "t:lib")
    assert changed.exit_code == 0, changed.log
    (compiled,) = [what for what in changed.ran if what.startswith("Compile gemm_")]
    assert "fp32" in compiled
    assert not [what for what in changed.ran if what.startswith(("Download", "Install", "Link gemm"))]
    assert not (third.named / "kernelwright_wheels").exists()

"""A machine that has nothing gets every header, object and library from the cache, and unpacks no compiler; workers
that share the cache's store build the same bytes.

Needs the launcher and the package registry, which holds the servers too: ``PYTHONPATH=tests python -m pytest
tests/remote``. The slow ones build all shipped libraries.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from remote import kernels, servers
from remote.machine import Build, Machine, size_of

SLOW = pytest.mark.slow
# How the actions of plans are called; the rest are calls of the generator and toolchains.
ACTIONS = ("Assemble", "Compile", "Describe gemm_", "Embed", "Link")
CASES = [
    pytest.param(("casd", "t:lib"), id="casd-small"),
    pytest.param(("buildgrid", "t:lib"), id="buildgrid-small", marks=SLOW),
    pytest.param(("casd", "kernels/gemm:gemm"), id="casd-all", marks=SLOW),
]


@dataclass
class Pair:
    """Two machines that share nothing but a cache and have built ``target``: ``second`` with empty local caches."""

    server: str
    address: str
    target: str
    first: Machine
    second: Machine
    builds: tuple[Build, Build]


@pytest.fixture(scope="module", params=CASES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    server, target = request.param
    folder = tmp_path_factory.mktemp(server)
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    workers = server == "casd" and servers.bubblewrap() is not None
    with getattr(servers, "workers" if workers else server)(folder / "server") as address:
        first = Machine(folder, "first", address)
        second = Machine(folder, "second", address, stranger=True, other_user=True)
        builds = []
        for machine, options in ((first, ["--remote-cache-write"]), (second, [])):
            machine.write("t/BUILD", kernels.small(256))
            builds.append(machine.pants(*options, "package", target))
            assert builds[-1].exit_code == 0, builds[-1].log
        yield Pair(server, address, target, first, second, (builds[0], builds[1]))


def test_the_first_build_fills_the_cache(pair: Pair) -> None:
    stats = pair.builds[0].stats
    assert stats["remote_cache_requests_cached"] == 0
    assert stats["remote_cache_write_successes"] == stats["remote_cache_write_attempts"] > 20


def test_every_action_comes_from_the_cache(pair: Pair) -> None:
    stats, ran = pair.builds[1].stats, pair.builds[1].ran
    assert ran == ()
    assert stats["local_execution_requests"] == 0
    assert stats["local_cache_requests_cached"] == 0
    assert stats["remote_cache_requests_cached"] == stats["remote_cache_requests"] > 20
    assert stats["remote_cache_write_attempts"] == 0


def test_the_results_are_the_same_bytes(pair: Pair) -> None:
    folder = pair.target.replace(":", "/")
    outputs = pair.first.outputs(folder)
    names = {path.split("/")[1] for path in outputs}
    assert len(names) == 3 and {"manifest.json"} < names, outputs.keys()
    assert pair.second.outputs(folder) == outputs


def test_no_wheel_is_unpacked_and_nothing_of_a_compiler_is_fetched(pair: Pair) -> None:
    assert not (pair.second.named / "tilewright_wheels").exists()
    assert not (pair.second.named / "pex_root").exists()
    fetched = size_of(pair.second.store)
    assert fetched < 20e6 + sum(map(len, pair.second.outputs(pair.target.replace(":", "/")).values()))


def test_workers_build_the_same_bytes(pair: Pair) -> None:
    if pair.server != "casd":
        pytest.skip(f"{pair.server} stores and executes nothing")
    if servers.bubblewrap() is None:
        pytest.skip("no bwrap works on this machine, and the workers' sandbox needs one")
    there = Machine(pair.first.home.parent, "there", pair.address, stranger=True)
    there.write("t/BUILD", kernels.small(256))
    remote = ["--pants-config-files=pants.remote.toml", f"--remote-execution-address=grpc://{pair.address}"]
    built = there.pants(*remote, "package", pair.target)
    assert built.exit_code == 0, built.log
    actions = [what for what in pair.builds[0].ran if what.startswith(ACTIONS)]
    assert all(any(what.startswith(kind) for what in actions) for kind in ACTIONS)
    assert built.ran == ()  # nothing on this machine: plans and toolchains come from the cache, the rest from workers
    assert built.stats["remote_execution_requests"] == built.stats["remote_execution_success"] == len(actions)
    folder = pair.target.replace(":", "/")
    assert there.outputs(folder) == pair.first.outputs(folder)


@SLOW
def test_a_new_kernel_is_compiled_with_the_compiler_from_the_cache(pair: Pair) -> None:
    third = Machine(pair.first.home.parent, "third", pair.address, stranger=True)
    third.write("t/BUILD", kernels.small(secrets.randbelow(900) + 300))
    changed = third.pants("package", "t:lib")
    assert changed.exit_code == 0, changed.log
    (compiled,) = [what for what in changed.ran if what.startswith("Compile gemm_")]
    assert "fp32" in compiled
    assert not [what for what in changed.ran if what.startswith(("Download", "Install", "Link gemm"))]
    assert not (third.named / "tilewright_wheels").exists()

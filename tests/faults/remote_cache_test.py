"""A build with a remote cache that fails: it succeeds with the right bytes, in the time that its timeouts state."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import grpc
import pytest

from e2e.workspace import Run
from faults import wire
from faults.builds import CheapBuilds
from faults.cache_server import CacheServer, Faults

# "fetch" takes blobs with the result; "validate" asks whether they are there, and fetches them when they are needed.
CONTENT = os.environ.get("KERNELWRIGHT_CACHE_CONTENT", "fetch")
# Longest answers that we wait for, as pants.ci.toml would say; every build must end 10 s after them at the latest.
TIMEOUTS = (
    "--remote-cache-rpc-timeout-millis=400",
    "--remote-store-rpc-timeout-millis=800",
    "--remote-store-rpc-retries=1",
    f"--cache-content-behavior={CONTENT}",
)
LIMIT_S = 120


@dataclass
class Site:
    """A cache that one build has filled, and a second build with an empty store of its own."""

    server: CacheServer
    build: CheapBuilds
    expected: list[bytes]
    restarts: list[threading.Thread] = field(default_factory=list)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = CacheServer()
    remote = ("--remote-cache-read", "--remote-cache-write", f"--remote-store-address={server.address}")
    count = len(CASES)
    first = CheapBuilds(tmp_path_factory.mktemp("first"), count, *remote, "--no-pantsd")
    filled = first.package(*range(count), timeout=900)
    assert filled.exit_code == 0, filled.stderr
    assert len(server.results) > 3 * count
    second = CheapBuilds(tmp_path_factory.mktemp("second"), count, *remote, *TIMEOUTS)
    try:
        yield Site(server, second, [first.library(n) for n in range(count)])
    finally:
        second.close()
        server.kill()


def nothing(site: Site) -> None:
    pass


def down_at_start(site: Site) -> None:
    site.server.kill()


def killed_mid_build(site: Site) -> None:
    calls = sum(site.server.calls.values())

    def kill_soon(count: int) -> None:
        if count == calls + 4:
            threading.Thread(target=site.server.kill).start()

    site.server.faults.after = kill_soon


def corrupted_mid_build(site: Site) -> None:
    """The blobs rot behind the server's back: what was read before is sound, what is read later is not."""
    calls = sum(site.server.calls.values())

    def rot_soon(count: int) -> None:
        if count == calls + 4:
            flipped_bit(site)

    site.server.faults.after = rot_soon


def killed_and_back_mid_build(site: Site) -> None:
    """Down in the middle, and up again without what it had."""
    calls = sum(site.server.calls.values())

    def restart() -> None:
        site.server.kill()
        site.server = CacheServer(site.server.port)

    def restart_soon(count: int) -> None:
        if count == calls + 4:
            site.restarts.append(threading.Thread(target=restart))
            site.restarts[-1].start()

    site.server.faults.after = restart_soon


def refusing(site: Site) -> None:
    site.server.faults.status["*"] = grpc.StatusCode.UNAVAILABLE


def slow(site: Site) -> None:
    site.server.faults.delay_s = 0.2


def silent(site: Site) -> None:
    site.server.faults.delay_s = 5


def truncated(site: Site) -> None:
    site.server.faults.blob = lambda data: data[: len(data) // 2]


def flipped_bit(site: Site) -> None:
    site.server.faults.blob = lambda data: data[:-1] + bytes([data[-1] ^ 1]) if data else data


def missing(site: Site) -> None:
    site.server.faults.blob = lambda data: None


def cut_off(site: Site) -> None:
    site.server.faults.cut_streams = True


def read_only(site: Site) -> None:
    for method in ("UpdateActionResult", "BatchUpdateBlobs", "Write"):
        site.server.faults.status[method] = grpc.StatusCode.PERMISSION_DENIED
    site.server.results.clear()


def full(site: Site) -> None:
    for method in ("UpdateActionResult", "BatchUpdateBlobs", "Write"):
        site.server.faults.status[method] = grpc.StatusCode.RESOURCE_EXHAUSTED
    site.server.results.clear()


def expired_token(site: Site) -> None:
    site.server.faults.token = "fresh"


def results_of_others(site: Site) -> None:
    keys = sorted(site.server.results)
    shifted = dict(zip(keys, [*keys[1:], keys[0]], strict=True))
    site.server.faults.result = lambda key, data: site.server.results[shifted[key]]


def results_without_outputs(site: Site) -> None:
    def strip(key: str, data: bytes) -> bytes:
        fields = {field: values for field, values in wire.decode(data).items() if field not in (2, 3)}
        return wire.encode([(field, value) for field, values in fields.items() for value in values])

    site.server.faults.result = strip


def failed_results(site: Site) -> None:
    site.server.faults.result = lambda key, data: data + wire.encode([(4, 1)])


def garbage_results(site: Site) -> None:
    site.server.faults.result = lambda key, data: b"\x0a\xff" + data[: len(data) // 2]


CASES: list[Callable[[Site], None]] = [
    down_at_start,
    killed_mid_build,
    corrupted_mid_build,
    flipped_bit,
    missing,
    read_only,
    expired_token,
    results_of_others,
]
# What was not fetched when the result was found cannot be made again when it turns out to be broken.
BROKEN_BLOBS = (truncated, flipped_bit, corrupted_mid_build, cut_off)
BROKEN = ("Remote CAS gave wrong digest", "connection lost")
if os.environ.get("KERNELWRIGHT_CACHE_FAULTS") == "all":
    CASES += [nothing, killed_and_back_mid_build, refusing, slow, silent, truncated, cut_off, full]
    CASES += [results_without_outputs, failed_results, garbage_results]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.__name__ for case in CASES])
def test_a_failing_cache_harms_no_build(site: Site, number: int) -> None:
    results, blobs = dict(site.server.results), site.server.blobs
    CASES[number](site)
    try:
        run = site.build.package(number, timeout=LIMIT_S)
    finally:
        heal(site, results, blobs)
    print(f"{CASES[number].__name__}: {run.wall_s:.1f} s, {run.cpu_s:.1f} CPU s, exit {run.exit_code}\n{run.stderr}")
    assert_clear(run)
    if run.exit_code != 0 and CASES[number] in BROKEN_BLOBS and CONTENT != "fetch":
        assert run.stderr.count("[ERROR]") == 1 and any(word in run.stderr for word in BROKEN), run.stderr
        return
    assert run.exit_code == 0, run.stderr
    assert site.build.library(number) == site.expected[number]
    assert site.build.is_whole(number)


def heal(site: Site, results: dict[str, bytes], blobs: dict[str, bytes]) -> None:
    """The same server again, whatever happened to it."""
    site.server.faults = Faults()
    for restart in site.restarts:
        restart.join()
    port = site.server.port
    site.server.kill()
    site.server = CacheServer(port)
    site.server.blobs, site.server.results = blobs, results


def assert_clear(run: Run) -> None:
    assert "Traceback" not in run.stderr and "panicked" not in run.stderr
    warnings = [line for line in run.stderr.splitlines() if "[WARN]" in line or "[ERROR]" in line]
    assert len(warnings) <= 12, run.stderr

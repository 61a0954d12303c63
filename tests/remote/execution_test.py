"""Compile and link actions run on workers, in a sandbox that has their inputs only, and give the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from remote import kernels, servers
from remote.machine import Machine

REMOTE = ["--pants-config-files=pants.remote.toml"]


@pytest.mark.parametrize(
    ("target", "kinds"),
    [
        pytest.param("t:lib", 2, id="small"),
        # All AMD libraries are built together with those for CPU.
        pytest.param("kernels/gemm:gemm", 8, id="all", marks=pytest.mark.slow),
    ],
)
def test_workers_build_what_this_machine_builds(tmp_path: Path, target: str, kinds: int) -> None:
    if servers.bubblewrap() is None:
        pytest.skip("no bwrap on this machine, which the workers' sandbox needs")
    with servers.workers(tmp_path / "server") as address:
        here, there = Machine(tmp_path, "here", address), Machine(tmp_path, "there", address)
        for machine in (here, there):
            machine.write("t/BUILD", kernels.small(256))
        local = here.pants("--no-remote-cache-read", "package", target)
        options = [*REMOTE, "--no-remote-cache-read", f"--remote-execution-address=grpc://{address}"]
        remote = there.pants(*options, "package", target)
        assert (local.exit_code, remote.exit_code) == (0, 0), remote.log
    actions = {what for what in local.ran if what.startswith(("Compile", "Link", "Disassemble", "Extract"))}
    assert len([what for what in actions if what.startswith("Link")]) >= kinds
    assert actions.isdisjoint(remote.ran)
    assert remote.stats["remote_execution_requests"] == remote.stats["remote_execution_success"] >= len(actions)
    outputs = here.outputs(target.replace(":", "/"))
    assert len(outputs) == 3 * kinds  # library, manifest, statement
    assert there.outputs(target.replace(":", "/")) == outputs

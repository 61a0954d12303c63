from __future__ import annotations

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.backends.registry import backend_for, toolchain, toolchains_for
from kernelwright.codegen.operation import operation
from kernelwright.codegen.resources.readers import report_reader
from kernelwright.codegen.violations import SpecError


@pytest.mark.parametrize("name", archs.names())
def test_every_arch_has_its_backend(name: str) -> None:
    arch = archs.load(name)
    assert backend_for(arch, {}).name == arch.backend
    made = toolchains_for(arch, {"host": "zig"})
    assert "host" in made and all(item.identity for item in made.values())


def test_a_system_toolchain_takes_arguments() -> None:
    made = toolchain("host", {"choice": "system", "path": "/usr/bin/g++", "fingerprint": "f00d"})
    assert "f00d" in made.identity and made != toolchain("host", "zig")


@pytest.mark.parametrize(
    ("kind", "choice", "message"),
    [
        ("hots", "zig", r"unknown toolchain kind 'hots' \(did you mean 'host'\?\); allowed: host, hip, cuda"),
        ("host", 3, r"unknown host toolchain 3; allowed: zig, system\[:PATH\]"),
        ("host", "gcc", "unknown host toolchain 'gcc'; allowed: zig, system"),
        ("host", {"path": "/usr/bin/g++"}, "unknown host toolchain None"),
        ("host", {"choice": "system"}, "'system': takes path, fingerprint beside choice; given: nothing"),
        ("host", {"choice": "system:/g++"}, "takes path, fingerprint beside choice; given: nothing"),
        ("hip", {"choice": "stock", "path": "/x"}, "'stock': takes nothing beside choice; given: path"),
        ("host", "system:", "unknown host toolchain 'system:'"),
        ("host", "zig:/usr/bin/g++", "'zig' takes no path; leave :/usr/bin/g.. out; with a path: system:/usr/bin/g"),
        ("host", {"choice": "system", "path": "g[+][+]", "fingerprint": "x"}, "not an absolute path"),
    ],
)
def test_wrong_toolchains(kind: str, choice: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        toolchain(kind, choice)  # type: ignore[arg-type]


def test_unknown_backends() -> None:
    with pytest.raises(SpecError, match="unknown backend 'vulkan'; allowed: cpu, ck_tile, cutlass"):
        report_reader("vulkan")
    with pytest.raises(SpecError, match="no GEMM kernel is for the backend 'vulkan'; allowed: cpu, ck_tile, cutlass"):
        operation("gemm").rules("vulkan")

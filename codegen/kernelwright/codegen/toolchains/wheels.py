"""The wheels that toolchains consist of, with their versions; ``3rdparty/toolchains`` pins them by hash."""

from __future__ import annotations

from collections.abc import Mapping

WHEELS: Mapping[str, Mapping[str, str]] = {
    "zig": {"ziglang": "0.17.0"},
    "clang": {"clang-tidy": "22.1.8"},
    "ck_tile": {"amd-aiter": "0.1.7.post2.dev18"},
    "cutlass": {"nvidia-cutlass": "4.2.0.0"},
    "flashinfer": {"flashinfer-python": "0.7.2.post1"},
    "cuda": {
        "nvidia-cuda-nvcc": "13.0.88",
        "nvidia-nvvm": "13.0.88",
        "nvidia-cuda-crt": "13.0.88",
        "nvidia-cuda-runtime": "13.0.96",
        "nvidia-cuda-cccl": "13.0.85",
    },
}
"""Versions by distribution, for each tree that they are unpacked to."""


def versions(*distributions: str) -> str:
    """Return names and versions as toolchain identities state them, such as ``ziglang 0.17.0``."""
    known = {name: version for wheels in WHEELS.values() for name, version in wheels.items()}
    return ", ".join(f"{name} {known[name]}" for name in distributions)

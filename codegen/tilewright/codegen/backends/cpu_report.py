"""Resources of CPU kernels in the manifest: none, the compiler reports nothing that a processor lacks."""

from __future__ import annotations


def read_report(data: bytes) -> None:
    """Nothing: registers are bounded by rule ``cpu.registers`` and no other resource is scarce."""

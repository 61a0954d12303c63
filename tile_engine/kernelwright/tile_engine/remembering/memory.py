"""The file that stores measured times, by device, driver, library and problem."""

from __future__ import annotations

import ctypes
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.dispatch import Device
from kernelwright.dispatch.recording.files import locked, replace
from kernelwright.files.strict_json import read_json
from kernelwright.tile_engine.measuring.gpu import load_driver, load_runtime

VERSION = 2
Times = Mapping[str, float]
"""Microseconds by kernel identity, with ``:value`` appended if the problem leaves a value open."""


def key_of(device: str, library_sha256: str, record: Mapping[str, Any]) -> str:
    """The key of an entry; ``device`` is the text of :func:`describe_device`."""
    return json.dumps([device, library_sha256, dict(record)], sort_keys=True)


def read_memory(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """The entries of a file; none if it is missing or empty. ValueError for a file of another kind or version."""
    file = Path(path)
    if not file.exists() or not file.stat().st_size:
        return {}
    try:
        content = read_json(file)
        if content["version"] != VERSION:
            raise ValueError(f"version is {content['version']}; allowed: {VERSION}")
        return {str(key): {str(k): _time(us) for k, us in times.items()} for key, times in content["times"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no memory of measured times: {error}") from None


def _time(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or raw < 0:
        raise ValueError(f"a time is {raw!r:.80}; allowed: microseconds, at least 0")
    return float(raw)


def remember(path: str | os.PathLike[str], entries: Mapping[str, Times]) -> None:
    """Add entries, replacing those with the same keys. Concurrent processes wait for each other."""
    with locked(Path(path)) as file:
        merged = {**read_memory(file), **{key: dict(times) for key, times in entries.items()}}
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(merged[key])}" for key in sorted(merged))
        replace(file, f'{{"version": {VERSION}, "times": {{\n{lines}\n}}}}\n')


def merge_memories(paths: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Add the entries of files to those in ``path``, which need not exist yet. ValueError for other kinds of files."""
    for each in paths:
        remember(path, read_memory(each))


def describe_device(device: Device) -> str:
    """Name of the processor or GPU, with cores or driver. Raises DeviceError if a GPU's driver is missing."""
    name, version = ctypes.create_string_buffer(256), ctypes.c_int()
    if device.kind == "hip":
        runtime = load_runtime()
        runtime.hipRuntimeGetVersion(ctypes.byref(version))
        runtime.hipDeviceGetName(name, len(name), device.ordinal)
        return f"hip: {name.value.decode()}, runtime {version.value}"
    if device.kind != "cuda":
        model = next(
            (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
        )
        return f"{device}: {model}, {len(os.sched_getaffinity(0))} cores"
    driver, handle = load_driver(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGet(ctypes.byref(handle), device.ordinal)
    driver.cuDeviceGetName(name, len(name), handle)
    return f"cuda: {name.value.decode()}, driver {version.value}"


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return []

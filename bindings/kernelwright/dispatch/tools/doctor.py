"""``kernelwright doctor`` reports what this machine offers, as text or as one JSON object.

It needs no other package; ``--verify`` needs ``kernelwright[doctor]``. Exit codes: 0 where CPU kernels can run and
every installed library is whole, 1 where the report lists a problem, 2 where a folder to verify is not there, 3 where a
file differs from its digest. An absent GPU is not a problem.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.device import Device, simulated_archs
from kernelwright.dispatch.core.errors import DeviceError, DigestMismatchError, KernelwrightError
from kernelwright.dispatch.loading import installed
from kernelwright.dispatch.loading.library import KernelLibrary
from kernelwright.dispatch.tools.store_check import Found, check_distributions, check_folders
from kernelwright.files.commands import ArgumentParser
from kernelwright.files.strict_json import parse_json, read_json

# Requirements of our own distributions, and array libraries whose arrays they accept.
_PACKAGES = (
    *("kernelwright", "kernelwright-pants", "numpy", "ml-dtypes", "tinygrad", "torch", "cupy", "jax"),
    *("click", "jinja2", "packaging", "pydantic", "pyelftools", "pyproject-metadata", "wheel", "lmdb"),
)
_COMPILERS = ("g++", "clang++", "nvcc", "hipcc", "cmake")
_HIP_RUNTIMES = ("libamdhip64.so.7", "libamdhip64.so.6")
_MOST_DEVICES = 64
_EXIT_BAD_INPUT, _EXIT_MISMATCH = 2, 3  # of kernelwright.codegen.interface.exit_codes, not installed everywhere

_VERIFIED = "name a store of Pants ([GLOBAL].local_store_dir), a cache or a folder of libraries"

Report = dict[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Print the report; the exit code."""
    parser = ArgumentParser("kernelwright doctor", description="Show what this machine offers to kernels.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--verify",
        action="append",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FOLDER",
        help="compare every file of a store of Pants, a cache or a folder of libraries, and of installed toolchains, "
        "with its digest, and kernels with each other; may be given several times; default: the store of Pants and "
        "the cache of the JIT; stop builds first",
    )
    given = parser.parse_args(arguments)
    wrong = [str(path) for path in given.verify or () if not path.is_dir()]
    if wrong:
        print(f"error: {', '.join(wrong)}: no such folder; {_VERIFIED}", file=sys.stderr)
        return _EXIT_BAD_INPUT
    facts = report(given.verify and [path for path in given.verify if path != Path()])
    print(json.dumps(facts, indent=1) if given.json else _text(facts))
    return _EXIT_MISMATCH if facts["damaged"] else 1 if facts["problems"] else 0


def report(verify: Sequence[Path] | None = None) -> Report:
    """Return the report as JSON values. Loads the CUDA driver into this process to query devices.

    ``verify``: folders whose files are all compared; if empty, the folders that this user's builds write.
    """
    problems: list[str] = []
    damaged: list[str] = []  # the problems that a digest reveals
    return {
        "interpreter": _interpreter(),
        "packages": {name: version for name in (*_PACKAGES, *_kernel_wheels()) if (version := _version(name))},
        "libraries": _libraries(problems, damaged),
        "devices": _devices(problems),
        "drivers": _drivers(),
        "torch": _torch_roads(),
        "toolchains": _toolchains(),
        "cache": _cache() | ({} if verify is None else {"verified": _verified(verify, problems, damaged)}),
        "problems": problems,
        "damaged": damaged,
    }


def _interpreter() -> Report:
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _kernel_wheels() -> list[str]:
    """Distributions that contain kernel libraries."""
    inside = f"{installed.PACKAGE}/"
    records = ((package.name, package.read_text("RECORD") or "") for package in metadata.distributions())
    return sorted({name for name, record in records if any(line.startswith(inside) for line in record.splitlines())})


def _libraries(problems: list[str], damaged: list[str]) -> Report:
    libraries: Report = {"dispatcher": None, "kernels": []}
    try:
        library = native.library()
        libraries["dispatcher"] = {"file": library._name, "abi_version": library.kw_dispatcher_abi_version()}
    except KernelwrightError as error:
        problems.append(str(error))
    for path in installed.manifests():
        entry: Report = {"manifest": str(path)}
        try:
            loaded = KernelLibrary.load(path)
            entry |= {"name": loaded.name, "for": loaded.manifest.target, "kernels": len(loaded.kernels)}
        except KernelwrightError as error:
            entry["problem"] = str(error)
            problems.append(str(error))
            damaged += [str(error)] * isinstance(error, DigestMismatchError)
        libraries["kernels"].append(entry)
    return libraries


def _devices(problems: list[str]) -> list[Report]:
    devices: list[Report] = []
    try:
        devices.append({"device": "cpu", "archs": Device("cpu").archs, "cpus": len(os.sched_getaffinity(0))})
    except DeviceError as error:
        problems.append(str(error))
    for kind in ("cuda", "hip"):
        devices.extend(_gpus(kind))
    if _version("tinygrad") and find_spec("kernelwright.simulator"):
        devices.extend({"device": f"sim:{arch}", "archs": (arch,), "simulated": True} for arch in simulated_archs())
    return devices


def _gpus(kind: str) -> Iterator[Report]:
    for ordinal in range(_MOST_DEVICES):
        try:
            yield {"device": f"{kind}:{ordinal}", "archs": Device(f"{kind}:{ordinal}").archs}
        except DeviceError:
            return


def _drivers() -> Report:
    drivers: Report = {"cuda": None, "amdgpu": _read(Path("/sys/module/amdgpu/version")), "hip": None}
    if cuda := _load("libcuda.so.1"):
        version = ctypes.c_int()
        if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:
            drivers["cuda"] = {"newest_cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}
            kernel = re.search(r"\b\d{3}\.\d+(\.\d+)?\b", _read(Path("/proc/driver/nvidia/version")) or "")
            drivers["cuda"]["driver"] = kernel[0] if kernel else None
    elif Path("/sys/module/amdgpu").is_dir():
        # Queried only if the kernel driver is present: loading the runtime starts threads.
        drivers["hip"] = next((name for name in _HIP_RUNTIMES if _load(name)), None)
    return drivers


_ROADS = "import json, kernelwright.torch as ours; print(json.dumps(ours.roads()))"
_ROADS_S = 120  # torch may be read from a cold disk


def _torch_roads() -> dict[str, str] | str | None:
    """Road of eager calls by function of kernelwright.torch, and why; a text if it cannot be determined.

    None without torch, which is imported in a separate process: that takes seconds and starts threads.
    """
    if find_spec("torch") is None or find_spec("kernelwright.torch") is None:
        return None
    command = [sys.executable, "-c", _ROADS]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ROADS_S, errors="replace")
        roads: dict[str, str] = parse_json(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"kernelwright.torch was not asked: {error}"
    except ValueError:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        return f"kernelwright.torch was not imported: {said[-1]}"
    return roads


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _toolchains() -> Report:
    """Compilers and headers: those for kernelwright.jit, those unpacked by Pants, and those of the machine.

    The JIT uses named folders, else installed wheels. Nothing uses the machine's compilers unless told to.
    """
    system = {name: {"path": path, "version": _says(path)} for name in _COMPILERS if (path := shutil.which(name))}
    kept = _pants_caches() / "named_caches/kernelwright_wheels"
    unpacked = sorted({path.name for path in kept.glob("*/*.whl")}) if kept.is_dir() else []
    rocm = os.environ.get("ROCM_PATH", "/opt/rocm")
    return {
        "installed": {
            name: version if version == pinned else f"{version}, but kernelwright.jit needs {pinned}"
            for name, pinned in _toolchain_distributions().items()
            if (version := _version(name))
        },
        "named": _named_trees(),
        "unpacked": unpacked,
        "system": system,
        "rocm": rocm if Path(rocm).is_dir() else None,
    }


def _named_trees() -> Report | str | None:
    """Folders by tree from the file that KERNELWRIGHT_TREES names, which take precedence over installed wheels."""
    file = os.environ.get("KERNELWRIGHT_TREES")
    if not file:
        return None
    try:
        trees = read_json(file)
    except (OSError, ValueError) as error:
        return f"KERNELWRIGHT_TREES is {file}, which cannot be read: {error}"
    if not isinstance(trees, dict):
        return f"KERNELWRIGHT_TREES is {file}, which holds no object of folders by tree"
    return {name: str(folder) for name, folder in trees.items()}


def _says(path: str) -> str:
    """The first line of a compiler's ``--version`` that holds a version."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run: {error}"
    lines = [line.strip() for line in done.stdout.splitlines() if re.search(r"\d+\.\d+", line)]
    return lines[0] if lines else f"exit code {done.returncode} and no version"


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _pants_caches() -> Path:
    return _user_cache() / "pants"


def jit_cache() -> Path:
    """The folder that kernelwright.jit uses by default, which may not be installed here."""
    return Path(os.environ.get("KERNELWRIGHT_CACHE") or _user_cache() / "kernelwright")


def _cache() -> Report:
    jit, pants = jit_cache().absolute(), _pants_caches()
    return {
        "jit_folder": str(jit),
        "jit_bytes": _bytes(jit),
        "jit_free_bytes": _free(jit),
        "pants_folder": str(pants),
        "pants_results_bytes": _bytes(pants / "lmdb_store"),
        "pants_toolchains_bytes": _bytes(pants / "named_caches/kernelwright_wheels"),
        "pants_free_bytes": _free(pants),
    }


def _free(folder: Path) -> int:
    """Free bytes of the file system that holds, or would hold, a folder."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free


def _verified(folders: Sequence[Path], problems: list[str], damaged: list[str]) -> str:
    """Summary of what was compared; damage is appended to ``problems`` and ``damaged``."""
    findings = Found()
    own = [_pants_caches() / "lmdb_store", jit_cache()]
    named = list(folders) or [folder for folder in own if folder.is_dir()] or own
    problems += [f"{folder} is no folder; {_VERIFIED}" for folder in named if not folder.is_dir()]
    check_folders([folder for folder in named if folder.is_dir()], findings)
    toolchains = _toolchain_distributions()
    check_distributions(list(toolchains), findings)
    problems += findings.problems
    damaged += findings.problems
    compared = "of installed toolchains" if toolchains else "no toolchain, because kernelwright is not installed"
    objects = f"the objects of {findings.kernels} kernels"
    unknown = f"; {findings.unknown} libraries do not say what they were made of" if findings.unknown else ""
    return f"{findings.files} files of {', '.join(map(str, named))} and {compared}; {objects}{unknown}"


def _toolchain_distributions() -> dict[str, str]:
    """Distributions of compilers and headers with their versions, as pinned by the ``jit`` extras of this one."""
    try:
        requirements = metadata.requires("kernelwright") or []
    except metadata.PackageNotFoundError:
        return {}
    pinned = (
        re.match(r"([\w.-]+)\s*\(?==\s*([^\s;)]+).*;.*extra == ['\"]jit", requirement) for requirement in requirements
    )
    return dict(sorted({(pin[1], pin[2]) for pin in pinned if pin}))


def _bytes(folder: Path) -> int:
    """Bytes that the files below a folder occupy on disk; stores are sparse files."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except OSError:
                continue  # removed in the meantime
    return total


def _text(facts: Report) -> str:
    lines: list[str] = []

    def section(title: str, rows: dict[str, str]) -> None:
        lines.append(f"{title}:")
        width = max(map(len, rows), default=0)
        lines.extend(f"  {key:<{width}}  {value}" for key, value in rows.items())
        if not rows:
            lines.append("  none")

    section("interpreter", facts["interpreter"])
    section("packages", facts["packages"])
    _library_text(facts["libraries"], section)
    section("devices", {one["device"]: _device_text(one) for one in facts["devices"]})
    section("drivers", {name: _joined(value) for name, value in facts["drivers"].items()})
    torch = facts["torch"]
    section("torch", {"roads": torch} if isinstance(torch, str) else torch or {})
    tools = facts["toolchains"]
    rows = {name: f"{tool['path']}: {tool['version']}" for name, tool in tools["system"].items()}
    unpacked = [" ".join(wheel.split("-")[:2]) for wheel in tools["unpacked"]]
    kinds = {name: _joined(tools[name]) for name in ("installed", "named", "rocm")}
    section("toolchains", {**kinds, "unpacked": _joined(unpacked), **rows})
    section("cache", {name.removesuffix("_bytes"): _amount(value) for name, value in facts["cache"].items()})
    lines += ["problems:", *(f"  {problem}" for problem in facts["problems"] or ["none"])]
    return "\n".join(lines)


def _library_text(libraries: Report, section: Callable[[str, dict[str, str]], None]) -> None:
    dispatcher = libraries["dispatcher"]
    about = f"{dispatcher['file']}, ABI version {dispatcher['abi_version']}" if dispatcher else "missing"
    kernels = {
        entry.get("name", entry["manifest"]) + f" {index}" * (index > 0): (
            entry.get("problem") or f"{entry['kernels']} kernels for {entry['for']}"
        )
        for index, entry in enumerate(libraries["kernels"])
    }
    section("libraries", {"dispatcher": about, **kernels})


def _amount(value: object) -> str:
    return f"{value / 1e9:.2f} GB" if isinstance(value, int) else str(value)


def _device_text(one: Report) -> str:
    return " ".join(one["archs"]) + (", simulated" if one.get("simulated") else "")


def _joined(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)

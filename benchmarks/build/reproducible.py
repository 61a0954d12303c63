"""Builds libraries twice, in two root folders with an empty cache each, and compares every file byte for byte.

The second build has another home, temporary folder, user, time zone, locale and umask, and its toolchains stand in
another folder (hard links of the first ones). Compared are rendered sources, all that a command wrote, manifests
and a wheel of each library. Prints JSON: per architecture and kind how many files are equal, and for each that is not,
its first differing offset. Exit code 1 if anything differs::

    PYTHONPATH=arch:codegen python benchmarks/build/reproducible.py --trees trees.json --out reproducible.json

The essential set of all architectures is 51 kernels, compiled twice; ``--arch`` and ``--filter`` narrow it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, ToolchainChoice, backend_for, toolchains_for
from kernelwright.codegen.building.build import build_libraries, read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.packaging.wheels import respond_wheel
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.selection import Selection, load_archs, select
from kernelwright.codegen.selecting.sets import set_archs

_NAME = "gemm"
_KINDS = (
    (".hpp", "headers"),
    (".c", "other rendered sources"),
    (".S", "other rendered sources"),
    (".s", "device assembly"),
    (".gpu.o", "device objects"),
    (".co", "code objects"),
    (".o", "objects"),
    (".so", "libraries"),
    (".json", "manifests"),
    (".whl", "wheels"),
)
_PROJECT = """
[project]
name = "kernels"
version = "1"
"""
_OTHER_MACHINE = {"USER": "somebody", "LOGNAME": "somebody", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "LANG": "C"}


@contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Change what a process sees of its machine: home, temporary folder, user, time zone, locale, umask."""
    before, mask = dict(os.environ), os.umask(0o077)
    folders = {name: str(folder / name.lower()) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    for path in folders.values():
        Path(path).mkdir(parents=True)
    os.environ.update({**_OTHER_MACHINE, **folders})
    try:
        yield
    finally:
        os.umask(mask)
        os.environ.clear()
        os.environ.update(before)


def moved(trees: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """The same trees below another folder."""
    for name, path in trees.items():
        shutil.copytree(path, folder / name, copy_function=_linked, symlinks=True)
    return {name: folder / name for name in trees}


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def wheel(manifest: Path, folder: Path) -> bytes:
    """A wheel of the library that a manifest describes."""
    made = json.loads(manifest.read_text())
    names = (made["library"], manifest.name)
    (folder / "project.toml").write_text(_PROJECT)
    request = {
        "project": str(folder / "project.toml"),
        "files": {f"kernels/{made['arch']}/{name}": str(manifest.with_name(name)) for name in names},
        "arch": made["arch"],
        "output": str(folder / f"{made['arch']}.whl"),
    }
    respond_wheel(request)
    return Path(request["output"]).read_bytes()


def build(
    selections: Sequence[Selection],
    chosen: Mapping[str, ToolchainChoice],
    trees: Mapping[str, Path],
    folder: Path,
    jobs: int,
) -> dict[str, bytes]:
    """Every file that a build of ``selections`` below ``folder`` renders, compiles, links or writes, by path."""

    def progress(line: str) -> None:
        print(f"{folder.name}: {line}", file=sys.stderr, flush=True)

    executor = LocalExecutor(trees, folder / "cache", jobs=jobs, progress=progress)
    manifests = build_libraries(_NAME, selections, chosen, executor, folder / "out")
    plans = [compile_plan(_NAME, s.arch, s.kernels, backend_for(s.arch, chosen)) for s in selections]
    made = executor.run(  # all of it comes from the cache
        [file for plan in plans for file in plan.all_files], [action for plan in plans for action in plan.all_actions]
    )
    files = {path: file.read_bytes() for path, file in made.items()}
    files |= {f"{path.parent.name}/{_NAME}.whl": wheel(path, folder) for path in manifests}
    return files | {str(path.relative_to(folder / "out")): path.read_bytes() for path in manifests}


def compare(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Per architecture and kind: ``equal``, ``total``, and ``different`` (path → first differing offset)."""
    if first.keys() != second.keys():
        raise SystemExit(f"the builds have different files: {sorted(first.keys() ^ second.keys())}")
    by_arch: dict[str, dict[str, Any]] = {}
    for path in sorted(first):
        kinds = by_arch.setdefault(path.partition("/")[0], {})
        entry = kinds.setdefault(_kind(path), {"equal": 0, "total": 0, "different": {}})
        entry["total"] += 1
        if first[path] == second[path]:
            entry["equal"] += 1
        else:
            entry["different"][path] = first_difference(first[path], second[path])
    return by_arch


def first_difference(first: bytes, second: bytes) -> int:
    """The first offset at which two different texts differ; the length of the shorter if it is a prefix."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((offset for offset, (left, right) in pairs if left != right), min(len(first), len(second)))


def nvcc(host_compiler: str) -> ToolchainChoice:
    """nvcc from the wheels with a g++ of this machine."""
    said = subprocess.run([host_compiler, "--version"], check=True, capture_output=True).stdout
    fingerprint = hashlib.sha256(said + Path(host_compiler).read_bytes()).hexdigest()
    return {"choice": "nvcc", "host_compiler": host_compiler, "fingerprint": fingerprint}


def _used(
    selections: Sequence[Selection], chosen: Mapping[str, ToolchainChoice], trees: Mapping[str, Path]
) -> dict[str, Path]:
    plans = [compile_plan(_NAME, s.arch, s.kernels, backend_for(s.arch, chosen)) for s in selections]
    names = {tree for plan in plans for action in plan.all_actions for tree in action.trees}
    return {name: trees[name] for name in sorted(names)}


def _kind(path: str) -> str:
    return next(kind for suffix, kind in _KINDS if path.endswith(suffix))


def main() -> int:
    """Build twice and print JSON. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", required=True, help="a JSON file that says where each tree is")
    parser.add_argument("--arch", action="append", help="may be repeated; all of the essential set unless given")
    parser.add_argument("--filter", help="an expression over kernels c")
    parser.add_argument("--nvcc", metavar="GXX", help="compile for NVIDIA with nvcc and this g++ instead of clang")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the JSON here as well")
    options = parser.parse_args()
    archs = options.arch or set_archs("gemm:essential")
    selections = select("set", "gemm:essential", archs, load_archs(), options.filter)
    trees = read_tree_roots(options.trees)
    chosen = {**DEFAULT_TOOLCHAINS, **({"cuda": nvcc(options.nvcc)} if options.nvcc else {})}
    chains = {k: made.identity for s in selections for k, made in toolchains_for(s.arch, chosen).items()}
    machine = describe(**chains)
    with tempfile.TemporaryDirectory() as folder:
        first = build(selections, chosen, trees, Path(folder, "one"), options.jobs)
        other = Path(folder, "another", "deeper")
        copies = moved(_used(selections, chosen, trees), other / "toolchains")
        with elsewhere(other):
            second = build(selections, chosen, copies, other, options.jobs)
    compared = compare(first, second)
    entries = [entry for kinds in compared.values() for entry in kinds.values()]
    result = {
        "machine": machine,
        "jobs": options.jobs,
        "kernels": {item.arch.name: [kernel.name for kernel in item.kernels] for item in selections},
        "files": {"equal": sum(entry["equal"] for entry in entries), "total": sum(entry["total"] for entry in entries)},
        "archs": compared,
    }
    text = json.dumps(result, indent=1) + "\n"
    if options.out:
        options.out.write_text(text)
    print(text, end="")
    return 0 if all(entry["equal"] == entry["total"] for entry in entries) else 1


if __name__ == "__main__":
    sys.exit(main())

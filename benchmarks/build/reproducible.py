"""Builds libraries twice, in two folders with an empty cache each, and compares every file byte for byte.

Compared are the rendered sources, all that a command wrote, and the manifests. Prints JSON: per architecture and kind
how many files are equal, and for each that is not, its first differing offset. Exit code 1 if anything differs::

    PYTHONPATH=arch:codegen python benchmarks/build/reproducible.py --trees trees.json --out reproducible.json

The essential set of all architectures is 51 kernels, compiled twice; ``--arch`` and ``--filter`` narrow it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

from tilewright.codegen.backends import DEFAULT_TOOLCHAINS, backend_for, toolchains_for
from tilewright.codegen.build import build_libraries, read_tree_roots
from tilewright.codegen.execute import LocalExecutor
from tilewright.codegen.library import library_plan
from tilewright.codegen.rulesets import rule_set_archs
from tilewright.codegen.select import Selection, load_archs, select

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
)


def build(selections: Sequence[Selection], trees: Mapping[str, Path], folder: Path, jobs: int) -> dict[str, bytes]:
    """Every file that a build of ``selections`` below ``folder`` renders, compiles, links or writes, by its path."""

    def progress(line: str) -> None:
        print(f"{folder.name}: {line}", file=sys.stderr, flush=True)

    executor = LocalExecutor(trees, folder / "cache", jobs=jobs, progress=progress)
    manifests = build_libraries(_NAME, selections, DEFAULT_TOOLCHAINS, executor, folder / "out")
    plans = [library_plan(_NAME, s.arch, s.kernels, backend_for(s.arch, DEFAULT_TOOLCHAINS)) for s in selections]
    made = executor.run(  # all of it comes out of the cache
        [file for plan in plans for file in plan.all_files], [action for plan in plans for action in plan.all_actions]
    )
    files = {path: file.read_bytes() for path, file in made.items()}
    return files | {str(path.relative_to(folder / "out")): path.read_bytes() for path in manifests}


def compare(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Per architecture and kind: ``equal``, ``total``, and ``different`` (path → first differing offset)."""
    if first.keys() != second.keys():
        raise SystemExit(f"the builds have different files: {sorted(first.keys() ^ second.keys())}")
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(first):
        kinds = found.setdefault(path.partition("/")[0], {})
        entry = kinds.setdefault(_kind(path), {"equal": 0, "total": 0, "different": {}})
        entry["total"] += 1
        if first[path] == second[path]:
            entry["equal"] += 1
        else:
            entry["different"][path] = first_difference(first[path], second[path])
    return found


def first_difference(first: bytes, second: bytes) -> int:
    """The first offset at which two different texts differ; the shorter one's length if the other only goes on."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((offset for offset, (left, right) in pairs if left != right), min(len(first), len(second)))


def _kind(path: str) -> str:
    return next(kind for suffix, kind in _KINDS if path.endswith(suffix))


def main() -> int:
    """Build twice, print JSON; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", required=True, help="a JSON file that says where each tree is")
    parser.add_argument("--arch", action="append", help="may be repeated; all of the essential set unless given")
    parser.add_argument("--filter", help="an expression over kernels c")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the JSON here as well")
    options = parser.parse_args()
    archs = options.arch or rule_set_archs("essential")
    selections = select("set", "essential", archs, load_archs(), options.filter)
    trees = read_tree_roots(options.trees)
    chains = {k: made.identity for s in selections for k, made in toolchains_for(s.arch, DEFAULT_TOOLCHAINS).items()}
    machine = describe(**chains)
    with tempfile.TemporaryDirectory() as folder:
        first = build(selections, trees, Path(folder, "one"), options.jobs)
        second = build(selections, trees, Path(folder, "another", "deeper"), options.jobs)
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

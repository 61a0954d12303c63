"""What is made of README.md: the picture of the road, and the table of what ships.

    PYTHONPATH=arch:codegen python tests/readme/generated.py

writes ``docs/static/road.svg`` and the table into the page, from the sets that the targets of ``kernels/`` name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernelwright.arch import Arch, load
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.files.arch_files import device_facts

ROOT = Path(__file__).resolve().parents[2]
README, ROAD = ROOT / "README.md", ROOT / "docs/static/road.svg"
MARKS = ("<!-- what ships: tests/readme/generated.py -->\n", "<!-- end -->\n")
OPERATIONS = ("gemm", "convolution", "attention", "norm")
RUN = {
    "ck_tile": "[simulated](docs/simulator.md); times are bounds, never measured by us",
    "fitted": "[simulated](docs/simulator.md); times [predicted](docs/benchmarks.md#times-on-amd-gpus) "
    "from counts and from constants fitted to measurements that AMD published; never measured by us",
    "cutlass": "on an NVIDIA H200, where [figures](docs/benchmarks.md) say so",
    "cpu": "in every test run, v4 where the processor has AVX-512",
}
_STEPS = (
    ("BUILD file", "gemm_kernel(…)"), ("spec", "validated, named"), ("header", "instantiates"),
    ("object", "per kernel"), ("library", "+ manifest.json"), ("dispatcher", "C, C++, Python"), ("result", "checked"),
)  # fmt: skip
_WIDTH, _GAP, _HEIGHT, _TOP = 112, 24, 56, 28


class _Build(dict[str, Any]):
    """The names of a BUILD file: whole sets are remembered, parts of them and other targets are nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.sets: list[tuple[str, list[str]]] = []

    def __missing__(self, name: str) -> Callable[..., None]:
        if name == "kernel_set":
            return lambda **fields: None if "filter" in fields else self.sets.append((fields["set"], fields["archs"]))
        return lambda **_: None


def sets(operation: str) -> list[tuple[str, list[str]]]:
    """The smallest set of an operation and the one that ships, with their architectures, by its BUILD file."""
    build = _Build()
    exec((ROOT / "kernels" / operation / "BUILD").read_text(), {}, build)
    return [(name, archs) for name, archs in build.sets if not name.endswith(":coverage")]  # which is part of release


def rows() -> Iterator[str]:
    """The table: kernels of each architecture and operation, of several sets side by side."""
    yield "| architecture | backend | GEMM | convolution | attention | norms | run |"
    yield "|---|---|---|---|---|---|---|"
    for facts in device_facts():
        arch = load(facts.name)
        counts = [" / ".join(_counts(arch, sets(name))) or "–" for name in OPERATIONS]
        run = RUN["fitted" if arch.time_model.startswith("cdna") else arch.backend]
        yield f"| {arch.name} | {arch.backend} | {' | '.join(counts)} | {run} |"


def _counts(arch: Arch, named: list[tuple[str, list[str]]]) -> Iterator[str]:
    for name, archs in named:
        if arch.name in archs:
            yield str(len(expand_set(name, arch).kernels))


def road() -> str:
    """The picture."""
    width = len(_STEPS) * (_WIDTH + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT + 2 * _TOP}" role="img" '
        'aria-label="The road from a BUILD file to a checked result">',
        "<style>text{font:13px sans-serif;text-anchor:middle;fill:#24292f}.s{font-size:11px;fill:#57606a}"
        "rect{fill:#f6f8fa;stroke:#57606a}path{stroke:#57606a;fill:none}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}rect{fill:#161b22;stroke:#9198a1}"
        "path{stroke:#9198a1}}</style>",
    ]
    for number, (title, detail) in enumerate(_STEPS):
        left = _GAP // 2 + number * (_WIDTH + _GAP)
        middle, center = left + _WIDTH // 2, _TOP + _HEIGHT // 2
        parts.append(f'<rect x="{left}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>')
        parts.append(f'<text x="{middle}" y="{center - 4}">{title}</text>')
        parts.append(f'<text class="s" x="{middle}" y="{center + 14}">{detail}</text>')
        if number:
            parts.append(f'<path d="M{left - _GAP} {center}h{_GAP - 2}m-6 -5l6 5l-6 5"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def page(text: str) -> str:
    """README.md with the table in it."""
    before, _, rest = text.partition(MARKS[0])
    return before + MARKS[0] + "\n".join(rows()) + "\n" + MARKS[1] + rest.partition(MARKS[1])[2]


def main() -> None:
    """Write both."""
    ROAD.write_text(road())
    README.write_text(page(README.read_text()))


if __name__ == "__main__":
    main()

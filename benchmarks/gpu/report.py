"""Markdown of what speed.py measured: headline rows, means by set of shapes, families and fused products.

``python benchmarks/gpu/report.py RESULT.json …`` prints it, one part for each result; with ``--write
docs/benchmarks.md`` the parts replace the text between ``<!-- speed: KIND -->`` and ``<!-- end of speed: KIND -->``,
and the headline rows replace those of the same kind (targets stay), where KIND is "test library" or "shipped library".
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ratios import STATES, geometric_mean, summary
from shape_sets import HELD_OUT, SETS, TUNED

_SEEN = {TUNED: "shapes it was tuned on", HELD_OUT: "unseen shapes"}
_ORIGIN = {TUNED: "tuned on", HELD_OUT: "unseen"}
OURS = "kernelwright"


def headline_start(kind: str) -> str:
    """The beginning of every headline row of this kind."""
    return f"| [GEMM of the dispatcher's choice ÷ torch's fastest call, H200, {kind}]"


def headlines(report: Mapping[str, Any], file: str, target: str = "–") -> list[str]:
    """A row per set of shapes for the first table of docs/benchmarks.md, with the target that was set."""
    kind = report["environment"]["library"]["kind"]
    rows = []
    for set_name in SETS:
        groups = [group for group in summary(report["results"]) if group["set"] == set_name and group["shapes"]]
        figures = "; ".join(
            f"{group['what']} {group['geometric_mean']:.2f} ({group['worst']['ratio']['median']:.2f})"
            for group in groups
        )
        if figures:
            rows.append(
                f"{headline_start(kind)}(#h200-gemm-of-the-dispatchers-choice), {_SEEN[set_name]} "
                f"| {target} | geometric means (worst): {figures} | `{file}` |"
            )
    return rows


def section(report: Mapping[str, Any], file: str) -> str:
    """Description of the measurement, then three tables and the cases without a ratio."""
    results = report["results"]
    parts = [
        _measured(report["environment"], file),
        _means(results),
        _families(results),
        _fused(results),
        _without_ratio(results),
    ]
    return "\n\n".join(part for part in parts if part)


def _measured(where: Mapping[str, Any], file: str) -> str:
    library = where["library"]
    tools = "; ".join(str(tool) for tool in library["toolchains"].values())
    return (
        f"{library['kind'].capitalize()}, {library['kernels']} kernels ({tools}); {where['gpu']}, driver "
        f"{where['driver']}, CUDA {where['cuda']}, torch {where['torch']}, Python {where['python']}, {where['date']}, "
        f"`{file}`:"
    )


def _means(results: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        f"| {_ORIGIN[group['set']]} | {group['what']} | {group['shapes']} | {group['geometric_mean']:.3f} "
        f"| {group['slower']} | {_ratio(group['worst']['ratio'])} ({_extents(group['worst'])}) |"
        for group in summary(results)
        if group["shapes"]
    ]
    return _table("shapes | operation | number | geometric mean of ratios | below 1 | worst", rows)


def _families(results: Iterable[Mapping[str, Any]]) -> str:
    groups: dict[str, dict[str, list[float]]] = {}
    for result in results:
        if result["set"] == HELD_OUT and "ratio" in result:
            what = "fused" if "+" in result["what"] else result["what"]
            groups.setdefault(result["family"], {}).setdefault(what, []).append(result["ratio"]["median"])
    columns = list(dict.fromkeys(what for group in groups.values() for what in group))
    rows = []
    for family, group in groups.items():
        cells = [
            f"{geometric_mean(group[what]):.2f} ({min(group[what]):.2f})" if what in group else "–" for what in columns
        ]
        rows.append(f"| {family} | {' | '.join(cells)} |")
    return _table(f"unseen: geometric mean (worst) | {' | '.join(columns)}", rows)


def _fused(results: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for result in results:
        if "+" in result["what"] and result["set"] == TUNED and "ratio" in result:
            ours, theirs = (result["us"][name]["median"] for name in (OURS, result["reference"]))
            rows.append(
                f"| {_extents(result)} | {result['what']} | {ours:.1f} | {theirs:.1f} | `{result['reference']}` "
                f"| {_ratio(result['ratio'])} |"
            )
    return _table("M × N × K | operation | ours, µs | torch, µs | torch's fastest call | ratio", rows)


def _without_ratio(results: Iterable[Mapping[str, Any]]) -> str:
    unrated = [result for result in results if "ratio" not in result]
    lines = []
    for state in STATES:
        cases: dict[str, list[str]] = {}
        for result in unrated:
            if result["state"] == state:
                cases.setdefault(result["what"], []).append(_extents(result))
        lines += [f"* {state}: {what}, {_counted(extents)}" for what, extents in cases.items()]
    return "\n".join(["Without a ratio:", "", *lines]) if lines else ""


def _counted(extents: Sequence[str], shown: int = 6) -> str:
    more = f" and {len(extents) - shown} more" if len(extents) > shown else ""
    return f"{len(extents)} {'shape' if len(extents) == 1 else 'shapes'} ({', '.join(extents[:shown])}{more})"


def _table(header: str, rows: Sequence[str]) -> str:
    if not rows:
        return ""
    return "\n".join([f"| {header} |", "|" + "---|" * (header.count("|") + 1), *rows])


def _extents(result: Mapping[str, Any]) -> str:
    return f"{result['m']}×{result['n']}×{result['k']}"


def _ratio(ratio: Mapping[str, float]) -> str:
    return f"{ratio['median']:.3f} [{ratio['min']:.3f}, {ratio['max']:.3f}]"


def written(page: str, report: Mapping[str, Any], file: str) -> str:
    """The page with the report's section and headline rows for its kind of library. ValueError if it has no place."""
    kind = report["environment"]["library"]["kind"]
    start, end = f"<!-- speed: {kind} -->", f"<!-- end of speed: {kind} -->"
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"the page has no single pair of lines {start} and {end}; add it where the tables belong")
    before, _, rest = page.partition(start)
    after = rest.partition(end)[2]
    lines = f"{before}{start}\n\n{section(report, file)}\n\n{end}{after}".split("\n")
    places = [number for number, line in enumerate(lines) if line.startswith(headline_start(kind))]
    if not places:
        raise ValueError(f"the page has no row that begins with {headline_start(kind)}; add one to its first table")
    target = lines[places[0]].split("|")[2].strip()
    kept = [line for number, line in enumerate(lines) if number not in places]
    return "\n".join([*kept[: places[0]], *headlines(report, file, target), *kept[places[0] :]])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the Markdown, or write it to the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT.json")
    parser.add_argument("--write", type=Path, metavar="PAGE.md")
    options = parser.parse_args(arguments)
    for path in options.results:
        report = json.loads(path.read_text())
        if options.write:
            options.write.write_text(written(options.write.read_text(), report, path.name))
        else:
            print("\n".join(headlines(report, path.name)), section(report, path.name), sep="\n\n", end="\n\n")


if __name__ == "__main__":
    main()

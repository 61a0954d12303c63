"""Charts as SVG or PNG, in colours that work on light and dark pages."""

from __future__ import annotations

import html
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    import matplotlib
except ImportError as error:
    raise RuntimeError("charts need matplotlib; pip install 'kernelwright[report]'") from error

matplotlib.use("Agg")

from matplotlib.figure import Figure

from kernelwright.tile_engine.results.analysis import Timed, best
from kernelwright.tile_engine.results.cover import Step

Chart = Figure
_METADATA = ("Date", "Creator", "Format", "Type")  # of no use to a page
_NEUTRAL = "#808080"
# From Okabe and Ito's palette, which colour-blind readers can distinguish: https://jfly.uni-koeln.de/color
_BLUE, _ORANGE = "#3b8fd4", "#e69f00"
MOST_KERNELS, MOST_PROBLEMS = 30, 60
"""Maximum numbers of kernels and problems in a heat map."""


def roofline(times: Sequence[Timed], roof: tuple[float, float] | None) -> Figure:
    """Best rate of each problem over its arithmetic intensity, under ``roof`` (operations, bytes per second)."""
    points = [(_intensity(one), float(one.cells["tflops"])) for one in best(times).values()]
    figure, axes = _axes("operations per byte", "TFLOP/s")
    axes.loglog([x for x, _ in points], [y for _, y in points], "o", ms=4, color=_BLUE)
    if roof and points:
        flops_per_s, bytes_per_s = roof
        low, high = min(x for x, _ in points), max(x for x, _ in points)
        ridge = flops_per_s / bytes_per_s
        ends = sorted({low / 2, min(max(ridge, low / 2), high * 2), high * 2})
        axes.plot(ends, [min(flops_per_s, x * bytes_per_s) / 1e12 for x in ends], color=_NEUTRAL, lw=1)
    return figure


def cover_curve(steps: Sequence[Step], cost: str) -> Figure:
    """Speed of the first kernels of a cover relative to the best ones, over their cost."""
    figure, axes = _axes(cost, "share of the best kernel's speed")
    axes.plot([step.cost for step in steps], [step.efficiency for step in steps], "o-", ms=3, color=_BLUE, label="mean")
    axes.plot([step.cost for step in steps], [step.worst for step in steps], "s--", ms=3, color=_ORANGE, label="worst")
    axes.set_ylim(0, 1.05)
    axes.set_xlim(0, 1.05 * steps[-1].cost)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, labelcolor=_NEUTRAL, fontsize=8)
    return figure


def heat_map(times: Sequence[Timed], short: Mapping[str, str]) -> Figure:
    """Fractions of the best kernel's speed: kernels, those that are best most often first, over problems.

    ``short``: descriptions of kernels by identity; of others the table's name is drawn.
    """
    fastest = best(times)
    wins: dict[str, int] = {}
    for one in fastest.values():
        wins[one.identity] = wins.get(one.identity, 0) + 1
    names = {one.identity: one.kernel for one in times}
    kernels = sorted(names, key=lambda identity: (-wins.get(identity, 0), names[identity]))[:MOST_KERNELS]
    problems = list(fastest)[:MOST_PROBLEMS]
    share: dict[tuple[int, str], float] = {}
    for one in times:  # with the best of its choices
        reached = fastest[one.problem].milliseconds / one.milliseconds
        share[one.problem, one.identity] = max(reached, share.get((one.problem, one.identity), 0.0))
    cells = [[share.get((problem, kernel), math.nan) for problem in problems] for kernel in kernels]
    figure, axes = _axes("problem", "", height=1.2 + 0.16 * len(kernels))
    image = axes.imshow(cells, aspect="auto", vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
    axes.set_yticks(
        range(len(kernels)), _labels({kernel: short.get(kernel, names[kernel]) for kernel in kernels}), fontsize=5
    )
    axes.set_xticks(range(len(problems)), [str(problem) for problem in problems], fontsize=4, rotation=90)
    bar = figure.colorbar(image, ax=axes, fraction=0.02, pad=0.01)
    bar.ax.tick_params(colors=_NEUTRAL, labelsize=6)
    return figure


def predicted_rates(tflops: Sequence[float], rates: Sequence[float]) -> Figure:
    """Measured rates over a model's predictions."""
    figure, axes = _axes("predicted TFLOP/s", "measured TFLOP/s", height=5)
    predicted = [max(rate, 1e-6) for rate in rates]
    axes.loglog(predicted, tflops, ".", ms=3, color=_BLUE)
    ends = [min(*predicted, *tflops), max(*predicted, *tflops)]
    axes.plot(ends, ends, color=_NEUTRAL, lw=1)
    return figure


def svg(figure: Figure, label: str) -> str:
    """Render the figure as an ``<svg>`` element without a background; equal figures give equal text.

    ``label`` is the text for screen readers.
    """
    with matplotlib.rc_context({"svg.hashsalt": "kernelwright", "svg.fonttype": "none"}):
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, bbox_inches="tight", metadata=dict.fromkeys(_METADATA))
    element = text.getvalue()[text.getvalue().index("<svg") :]
    return element.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def save_png(figure: Figure, path: Path) -> None:
    """Write the figure with a white background."""
    figure.savefig(path, dpi=160, facecolor="white", bbox_inches="tight", metadata={"Software": None})


def _axes(x: str, y: str, height: float = 3.2) -> tuple[Figure, Any]:
    figure = Figure(figsize=(8, height))
    axes = figure.add_subplot()
    axes.set_xlabel(x, color=_NEUTRAL, fontsize=8)
    axes.set_ylabel(y, color=_NEUTRAL, fontsize=8)
    axes.tick_params(colors=_NEUTRAL, which="both", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(_NEUTRAL)
    axes.grid(alpha=0.2, color=_NEUTRAL)
    return figure, axes


def _intensity(one: Timed) -> float:
    """Operations per byte, the ratio of two rates over the same time."""
    return float(one.cells["tflops"]) * 1e12 / (float(one.cells["bandwidth_gb_s"]) * 1e9)


def _labels(names: Mapping[str, str]) -> list[str]:
    """Names by identity, cut where they are long; those that look the same have the beginning of the identity."""
    cut = {key: name if len(name) <= 70 else f"{name[:40]}…{name[-29:]}" for key, name in names.items()}
    shared = Counter(cut.values())
    return [name if shared[name] == 1 else f"{name} {identity[:8]}" for identity, name in cut.items()]

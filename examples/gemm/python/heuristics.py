"""Four ways to choose kernels: heuristics.py [--library DIR].

The dispatcher's own model of times, the first kernel that fits, one kernel by name, and a function of one's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelEntry


def widest_block(problem: GemmProblem, candidates: Sequence[KernelEntry]) -> list[float]:
    """Scores, lower is better: prefers the kernel with the most rows in its register blocks."""
    return [-float(candidate.spec["warp_tile"]["m"]) for candidate in candidates]


def main(arguments: list[str] | None = None) -> None:
    """Choose a kernel for one problem in each way, and print the whole ranking of the first."""
    options = example_parser(__doc__).parse_args(arguments)
    library = open_library(options)
    problem = GemmProblem(512, 384, 256, dtype="bf16", layout="rcr")

    analytic = Dispatcher(library)
    print(analytic.explain(problem))
    chosen = analytic.select(problem).kernel
    for selection in ("analytic", "first_fit", chosen.name, widest_block):
        choice = Dispatcher(library, selection=selection).select(problem)
        print(f"{getattr(selection, '__name__', selection)}: {choice.kernel.name} ({choice.reason})")

    # A priority decides in first fit and between kernels with equal scores.
    first = Dispatcher(library, selection="first_fit")
    first.set_priority(chosen, 1)
    assert first.select(problem).kernel is chosen


if __name__ == "__main__":
    main()

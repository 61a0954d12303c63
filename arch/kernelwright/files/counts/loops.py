"""Loops of a function, found from its control flow, and which of them is the main loop.

Natural loops (Aho, Lam, Sethi, Ullman, "Compilers", 9.6): a branch to a block that dominates it closes a loop of all
blocks that reach the branch without passing that block. A jump to lower addresses alone does not make a loop: compilers
place shared ends of a function before the code that jumps to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.files.counts.line import Line, kind_of

Loop = frozenset[int]
"""The lines of a loop, as indices into their function."""


def loops(function: Sequence[Line]) -> list[Loop]:
    """Return every natural loop, ordered by its first line; loops with the same first block are one."""
    ranges, following = blocks(function)
    dominators = _dominators(following)
    bodies: dict[int, set[int]] = {}
    for block, goals in enumerate(following):
        for head in goals:
            if dominators[block] >> head & 1:
                bodies.setdefault(head, {head}).update(_reaching(block, head, following))
    return [frozenset(at for block in body for at in ranges[block]) for _, body in sorted(bodies.items())]


def main_loop(function: Sequence[Line]) -> Loop | None:
    """Return the innermost loop with the most matrix instructions; None if no loop has one.

    Innermost: no smaller loop inside it has matrix instructions. Ties go to the first.
    """
    matrix = frozenset(at for at, line in enumerate(function) if kind_of(line.name) == "matrix")
    matrix_loops = [loop for loop in loops(function) if loop & matrix]
    inner = [loop for loop in matrix_loops if not any(other < loop for other in matrix_loops)]
    return max(inner, key=lambda loop: len(loop & matrix), default=None)


def blocks(function: Sequence[Line]) -> tuple[list[range], list[list[int]]]:
    """Return straight-line blocks, as ranges of lines, and the successors of each."""
    ends = {at + 1 for at, line in enumerate(function) if line.branches or line.leaves}
    goals = {line.goal for line in function if line.branches and line.goal is not None}
    starts = sorted(({0} | goals | ends) - {len(function)})
    block_at = {start: block for block, start in enumerate(starts)}
    ranges = [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(function)], strict=True)]
    following: list[list[int]] = []
    for block in ranges:
        last = function[block[-1]]
        successors = [block_at[last.goal]] if last.branches and last.goal is not None else []
        if not last.leaves and block.stop < len(function):
            successors.append(block_at[block.stop])
        following.append(successors)
    return ranges, following


def _dominators(following: Sequence[Sequence[int]]) -> list[int]:
    """The dominators of each block as bits: the blocks on every path from block 0; 0 for an unreachable block."""
    before: dict[int, list[int]] = {}
    reached = [0]
    for block in reached:
        for goal in following[block]:
            if goal and goal not in before:
                reached.append(goal)
            before.setdefault(goal, []).append(block)
    every = (1 << len(following)) - 1
    dominators = [every if block in before else 0 for block in range(len(following))]
    dominators[0] = 1
    changed = True
    while changed:
        changed = False
        for block in reached[1:]:
            common = every
            for other in before[block]:
                common &= dominators[other]
            now = common | 1 << block
            changed, dominators[block] = changed or now != dominators[block], now
    return dominators


def _reaching(block: int, head: int, following: Sequence[Sequence[int]]) -> set[int]:
    """Return the blocks from which ``block`` is reached without passing ``head``."""
    reaching = {block}
    changed = block != head
    while changed:
        more = {
            other
            for other, goals in enumerate(following)
            if other != head and other not in reaching and any(goal in reaching for goal in goals if goal != head)
        }
        reaching |= more
        changed = bool(more)
    return reaching

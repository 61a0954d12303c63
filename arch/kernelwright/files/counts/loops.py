"""Loops of a function by its control flow, and which of them is the main one.

Natural loops (Aho, Lam, Sethi, Ullman, "Compilers", 9.6): a branch to a block that dominates it closes a loop of all
blocks that reach the branch without passing that block. A jump to lower addresses alone says nothing: compilers put
shared ends of a function in front of what jumps to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.files.counts.line import Line, kind_of

Loop = frozenset[int]
"""The lines of a loop, by index in their function."""


def loops(function: Sequence[Line]) -> list[Loop]:
    """Every natural loop, by where its first line stands; loops with a common first block are one."""
    ranges, following = blocks(function)
    dominators = _dominators(following)
    found: dict[int, set[int]] = {}
    for block, goals in enumerate(following):
        for head in goals:
            if dominators[block] >> head & 1:
                found.setdefault(head, {head}).update(_reaching(block, head, following))
    return [frozenset(at for block in body for at in ranges[block]) for _, body in sorted(found.items())]


def main_loop(function: Sequence[Line]) -> Loop | None:
    """The innermost loop with the most matrix instructions; None if no loop has one.

    Innermost: no smaller loop inside has matrix instructions. Of equals, the first.
    """
    matrix = frozenset(at for at, line in enumerate(function) if kind_of(line.name) == "matrix")
    found = [loop for loop in loops(function) if loop & matrix]
    inner = [loop for loop in found if not any(other < loop for other in found)]
    return max(inner, key=lambda loop: len(loop & matrix), default=None)


def blocks(function: Sequence[Line]) -> tuple[list[range], list[list[int]]]:
    """Straight-line blocks, as ranges of lines, and the blocks that follow each."""
    ends = {at + 1 for at, line in enumerate(function) if line.branches or line.leaves}
    goals = {line.goal for line in function if line.branches and line.goal is not None}
    starts = sorted(({0} | goals | ends) - {len(function)})
    block_at = {start: block for block, start in enumerate(starts)}
    ranges = [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(function)], strict=True)]
    following: list[list[int]] = []
    for block in ranges:
        last = function[block[-1]]
        found = [block_at[last.goal]] if last.branches and last.goal is not None else []
        if not last.leaves and block.stop < len(function):
            found.append(block_at[block.stop])
        following.append(found)
    return ranges, following


def _dominators(following: Sequence[Sequence[int]]) -> list[int]:
    """Dominators of each block: those that every path from block 0 passes, as bits; 0 for an unreachable block."""
    before: dict[int, list[int]] = {}
    reached = [0]
    for block in reached:
        for goal in following[block]:
            if goal and goal not in before:
                reached.append(goal)
            before.setdefault(goal, []).append(block)
    every = (1 << len(following)) - 1
    found = [every if block in before else 0 for block in range(len(following))]
    found[0] = 1
    changed = True
    while changed:
        changed = False
        for block in reached[1:]:
            common = every
            for other in before[block]:
                common &= found[other]
            now = common | 1 << block
            changed, found[block] = changed or now != found[block], now
    return found


def _reaching(block: int, head: int, following: Sequence[Sequence[int]]) -> set[int]:
    """The blocks from which ``block`` is reached without passing ``head``."""
    found = {block}
    changed = block != head
    while changed:
        more = {
            other
            for other, goals in enumerate(following)
            if other != head and other not in found and any(goal in found for goal in goals if goal != head)
        }
        found |= more
        changed = bool(more)
    return found

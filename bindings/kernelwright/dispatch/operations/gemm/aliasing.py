"""The memory that operands occupy, and whether results share memory with other operands."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.gemm.operand import Operand


def check_aliasing(views: dict[str, Operand]) -> None:
    """Raise ArrayError if ``out`` shares memory with an input, unless it is c."""
    out = views.get("out")
    if out is None:
        return
    for name in views:
        if name not in ("c", "out") and overlaps(out, views[name]):
            raise ArrayError(f"out shares memory with {name}, which is read while out is written; pass another out")
    if "c" in views and views["c"].pointer != out.pointer and overlaps(out, views["c"]):
        raise ArrayError("out overlaps c without being the same matrix; pass c=out or separate memory")


def check_group_aliasing(views: dict[str, Sequence[Operand]]) -> None:
    """Raise ArrayError if a result shares memory with an operand other than its own C."""
    by_address = sorted(
        ((*span(view), name, number, view) for name, group in views.items() for number, view in enumerate(group)),
        key=lambda each: each[:2],
    )
    open_: list[
        tuple[int, int, str, int, Operand]
    ] = []  # operands that begin before the next one and may reach into it
    for each in by_address:
        begin, _, name, number, view = each
        open_ = [other for other in open_ if other[1] > begin]
        for _, _, other_name, other_number, other in open_:
            if "out" not in (name, other_name) or not overlaps(view, other):
                continue
            own = number == other_number and {name, other_name} == {"out", "c"} and view.pointer == other.pointer
            if not own:
                first, second = sorted([f"{name}[{number}]", f"{other_name}[{other_number}]"], reverse=True)
                raise ArrayError(f"{first} shares memory with {second}; pass another out")
        open_.append(each)


def overlaps(left: Operand, right: Operand) -> bool:
    """Whether two operands share an element. Blocks side by side in one larger matrix do not."""
    left_begin, left_end = span(left)
    right_begin, right_end = span(right)
    if left_begin >= right_end or right_begin >= left_end:
        return False
    if any(view.batch not in (None, 1) for view in (left, right)):
        return True
    sizes = [dtypes.ITEMSIZE[view.dtype] for view in (left, right)]
    steps = [max(view.strides) * size for view, size in zip((left, right), sizes, strict=True)]
    widths = [_line(view) * size for view, size in zip((left, right), sizes, strict=True)]
    if steps[0] != steps[1] or steps[0] == 0:
        return True
    # Both have the same distance between lines, so they are disjoint if their positions within that distance are.
    offset = (right_begin - left_begin) % steps[0]
    return not (offset >= widths[0] and offset + widths[1] <= steps[0])


def _line(view: Operand) -> int:
    return view.shape[1] if view.strides[0] >= view.strides[1] else view.shape[0]


def span(view: Operand) -> tuple[int, int]:
    """Address of the first byte and of the byte after the last; both are equal for an empty operand."""
    if 0 in view.shape or view.batch == 0:
        return view.pointer, view.pointer
    if view.b_format:
        return view.pointer, view.pointer + _bytes_of_shuffled(view)
    (rows, columns), (row_stride, column_stride) = view.shape, view.strides
    last = (rows - 1) * row_stride + (columns - 1) * column_stride + ((view.batch or 1) - 1) * view.batch_stride
    return view.pointer, view.pointer + (last + 1) * dtypes.ITEMSIZE[view.dtype]


def _bytes_of_shuffled(view: Operand) -> int:
    return int(getattr(view.owner, "nbytes", 0))

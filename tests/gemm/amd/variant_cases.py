"""What a kernel of a variant is run on: 1 to 9 K loops, tails and gaps where it takes them, what its variant adds."""

from __future__ import annotations

from dataclasses import replace

from gemm.amd.variants import Case
from gemm.correctness.reference import ACTIVATIONS
from kernelwright.arch import load
from kernelwright.dispatch import KernelEntry
from kernelwright.dispatch.arrays.dtypes import ITEMSIZE

_GROUPS_PER_LAUNCH = 48


class _Sizes:
    """Extents that a kernel takes: its tile, and what can be cut off it."""

    def __init__(self, entry: KernelEntry) -> None:
        spec = entry.spec
        self.m, self.n, self.k = (int(spec["tile"][axis]) for axis in "mnk")
        self.vector = 16 // min(ITEMSIZE[spec[f"dtype_{x}"]] for x in "abc")  # at least those of any access
        if spec["pipeline"] == "narrow":
            self.vector = 3  # rows of odd lengths
        by_column = spec["layout"][0] == "c"  # then A is read along m in vectors
        self.rows = 0 if not spec["pad"]["m"] else self.vector if by_column else 3
        self.columns = self.vector if spec["pad"]["n"] else 0
        self.depth = self.vector if spec["pad"]["k"] else 0
        self.gap = self.vector
        self.first = 2 if spec["pipeline"] == "compv6" else 1
        self.scales = spec["dtype_acc"] != "int32"


def cases_of(entry: KernelEntry) -> list[Case]:
    """Everything that a kernel is run on."""
    x, spec = _Sizes(entry), entry.spec
    cases = [
        Case(
            x.m - x.rows,
            x.n - x.columns,
            loops * x.k - (x.depth if loops % 2 else 0),
            x.gap * (loops % 3),
            bias=loops % 2 == 0,
        )
        for loops in range(x.first, 10)
    ]
    two = Case(x.m + (x.rows or x.m), 2 * x.n - x.columns, 3 * x.k - x.depth, x.gap, bias=True)
    cases += [two, replace(two, whole=False), Case(x.m, x.n, 4 * x.k, whole=False)]
    if x.scales:
        cases += [replace(two, alpha=-2.0, beta=3.0), replace(two, alpha=0.5, beta=0.25, whole=False)]
    if spec.get("activation") == "any":
        cases += _epilogues(two, x)
    if spec.get("split_k"):
        cases = [replace(case, split_k=slices) for case in cases if (slices := _slices(case, x))]
    if spec.get("batched"):
        cases += [
            replace(two, batch=2, m=x.m, shared="b"),
            *([replace(two, batch=2, m=x.m, num_d=2, activation="relu")] if spec.get("activation") == "any" else []),
            replace(cases[-1], batch=3, m=x.m, n=x.n, shared="a"),
            replace(cases[-1], batch=3, m=x.rows or x.m),
        ]
    if spec.get("grouped"):
        return _grouped(cases, x, entry)
    empty = Case(two.m, two.n, 0, bias=True, split_k=2 if spec.get("split_k") else 1)
    cases += [empty, *([replace(empty, beta=-2.0)] if x.scales else [])]
    if spec.get("persistent"):
        cases.append(Case(x.m * (_workgroups(entry) + 3) - x.rows, x.n - x.columns, x.first * x.k))
    return cases


def _epilogues(case: Case, x: _Sizes) -> list[Case]:
    """Each activation, alone and behind bias and residual; each number of D tensors, added and multiplied; C, too."""
    small = replace(case, m=x.m - x.rows, n=x.n - x.columns, k=x.first * x.k)
    names = [name for name in ACTIVATIONS if name != "none"]
    return [
        *(replace(small, bias=False, whole=False, activation=name) for name in names),
        *(replace(small, num_d=2, whole=False, activation=name) for name in names),
        *(replace(small, num_d=count, bias=count == 1) for count in (1, 2, 3, 4)),
        replace(small, num_d=1, bias=False),
        replace(small, num_d=1, bias=False, d_op="multiply", activation="silu", whole=False),
        replace(small, num_d=3, d_op="multiply", activation="relu"),
        replace(case, num_d=2, alpha=-2.0, beta=3.0, activation="relu"),
        replace(case, num_d=1, alpha=0.5, beta=0.25, activation="gelu", whole=False),
        replace(small, k=0, num_d=2, beta=-2.0, activation="fast_gelu", whole=False),
    ]


def _slices(case: Case, x: _Sizes) -> int:
    loops = -(-case.k // x.k)
    return next((slices for slices in (3, 2) if loops // slices >= x.first), 0)


def _workgroups(entry: KernelEntry) -> int:
    return load(entry.arch).compute_units * int(entry.spec["k_block_per_cu"])


def _grouped(cases: list[Case], x: _Sizes, entry: KernelEntry) -> list[Case]:
    """A product alone, products of unlike shapes, some without elements, more than one launch takes; and, persistent,
    more tiles than workgroups."""
    shapes = [(case.m, case.n, case.k) for case in cases[:9]]
    small = tuple(
        (x.rows + 1 if x.rows == 3 else x.m, x.columns or x.n, x.first * x.k) for _ in range(_GROUPS_PER_LAUNCH)
    )
    more = [
        cases[0],
        replace(cases[2], groups=((0, x.n, x.k), *shapes[3:], (x.m, 0, x.k))),
        replace(cases[9], groups=(shapes[1],)),
        replace(cases[-1], groups=(shapes[2], shapes[0])),
        replace(cases[1], groups=small),
    ]
    if entry.spec.get("persistent"):
        many = (x.m * _workgroups(entry) - x.rows, x.columns or x.n, x.first * x.k)
        more.append(replace(cases[1], groups=(many, shapes[0])))
    return more

"""What each wheel of kernels holds, by architecture and dtype: the tables of docs/packaging.md, made from the sets.

PYTHONPATH=arch:codegen:tests python tests/readme/wheels.py
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kernelwright.arch import load
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.files.arch_files import device_facts
from readme.generated import OPERATIONS, ROOT, sets

PAGE = ROOT / "docs/packaging.md"
MARKS = ("<!-- contents of wheels: tests/readme/wheels.py -->\n", "<!-- end of contents -->\n")
Spec = dict[str, Any]

_LAYOUTS = ("rcr", "rrr", "crr", "ccr")
_DIRECTIONS = {"forward": "forward", "backward_data": "data gradients", "backward_weight": "weight gradients"}
_FAMILIES = {
    "forward": ("fwd",),
    "decode": ("fwd_splitkv", "fwd_decode"),
    "prefill": ("batch_prefill", "fwd_pagedkv"),
    "append": ("fwd_appendkv",),
    "backward": ("bwd_dq_dk_dv", "bwd"),
}


def _gemm(spec: Spec) -> Iterator[tuple[str, str]]:
    fused = spec.get("activation") or spec.get("num_d")
    word = "epilogues" if spec.get("activation") == "any" else "bias" if fused else "plain"
    words = {
        "preshuffle": "shuffled B" if word == "plain" else f"shuffled B with {word}",
        "grouped": "groups",
        "split_k": "split K",
        "stream_k": "stream K",
    }
    word = next((said for field, said in words.items() if spec.get(field) not in (None, False, "none")), word)
    result = "fp32 result" if spec["dtype_c"] == "fp32" != spec["dtype_a"] else ""
    yield spec["layout"], result or word
    if spec.get("batched"):
        yield spec["layout"], "batches"


def _convolution(spec: Spec) -> Iterator[tuple[str, str]]:
    column = _DIRECTIONS[spec["direction"]]
    yield column, "depthwise" if spec["depthwise"] else "epilogues" if spec.get("activation") == "any" else "plain"


def _attention(spec: Spec) -> Iterator[tuple[str, str]]:
    for column, families in _FAMILIES.items():
        if spec["family"] in families:
            same = spec["hdim_q"] == spec["hdim_v"]
            yield column, str(spec["hdim_q"]) if same else f"{spec['hdim_q']}/{spec['hdim_v']}"


def _norm(spec: Spec) -> Iterator[tuple[str, str]]:
    quantised = spec.get("dtype_y") in ("fp8", "int8") and spec["direction"] == "forward"
    yield f"{spec['kind']} norm", f"{spec['dtype_y']} result" if quantised else spec["direction"]


_CELLS: dict[str, tuple[tuple[str, ...], Callable[[Spec], Iterator[tuple[str, str]]]]] = {
    "gemm": (_LAYOUTS, _gemm),
    "convolution": (tuple(_DIRECTIONS.values()), _convolution),
    "attention": (tuple(_FAMILIES), _attention),
    "norm": (("rms norm", "layer norm"), _norm),
}
_TITLES = {"gemm": "GEMM", "convolution": "Convolution", "attention": "Attention", "norm": "Norms"}
_MEANING = {
    "gemm": "layouts of A, B and C; `epilogues`: bias, up to four D tensors, any activation, alpha and beta, "
    "all chosen at run time",
    "convolution": "2D and 3D, any groups; `epilogues`: bias, residual and any activation, chosen at run time",
    "attention": "head dimensions, of Q and K/of V where they differ; smaller ones run padded",
    "norm": "`int8 result` and `fp8 result`: quantised, with a scale for each row",
}


def tables() -> Iterator[str]:
    """One table for each operation."""
    for operation in OPERATIONS:
        columns, cells = _CELLS[operation]
        yield f"**{_TITLES[operation]}**: {_MEANING[operation]}."
        yield ""
        yield f"| architecture | dtype | {' | '.join(columns)} |"
        yield f"|---|---|{'---|' * len(columns)}"
        for facts in device_facts():
            specs = shipped(operation, facts.name)
            for dtype, found in _by_dtype(specs, cells).items():
                texts = [", ".join(_ordered(found[column])) or "–" for column in columns]
                yield f"| {facts.name} | {dtype} | {' | '.join(texts)} |"
        yield ""


def shipped(operation: str, arch: str) -> list[Spec]:
    """Canonical specs of the set that the wheel for an architecture is made from: the last one of its BUILD file."""
    named = [name for name, archs in sets(operation) if arch in archs]
    if not named:
        return []
    return [json.loads(kernel.canonical_json)["spec"] for kernel in expand_set(named[-1], load(arch)).kernels]


def _by_dtype(
    specs: Iterable[Spec], cells: Callable[[Spec], Iterator[tuple[str, str]]]
) -> dict[str, dict[str, set[str]]]:
    made: dict[str, dict[str, set[str]]] = {}
    for spec in specs:
        a, b = (spec.get(name, spec.get("dtype")) for name in ("dtype_a", "dtype_b"))
        row = made.setdefault(a if a == b else f"{a} x {b}", defaultdict(set))
        for column, word in cells(spec):
            row[column].add(word)
    return dict(sorted(made.items()))


def _ordered(words: set[str]) -> list[str]:
    """Numbers by size, words as they are said first."""
    first = ("plain", "forward", "epilogues", "batches")
    return sorted(words, key=lambda word: (int(word.partition("/")[0]) if word[0].isdigit() else 0,
                                           first.index(word) if word in first else len(first), word))  # fmt: skip


def page(text: str) -> str:
    """The page with the tables in it."""
    before, _, rest = text.partition(MARKS[0])
    return before + MARKS[0] + "\n".join(tables()) + MARKS[1] + rest.partition(MARKS[1])[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))

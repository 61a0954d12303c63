"""Norm problems of transformers: the width of the residual stream, with some numbers of tokens."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.tile_engine.operation import ProblemSets, Record
from kernelwright.tile_engine.problems.models import PARTS, models

_TOKENS = ((1, 3, 8), (33, 64, 200), (512, 1500, 4096))
"""Numbers of tokens: one generated token or a few, a small batch, a prompt; each model gets one of each kind."""
_DTYPES = ("fp32", "fp16", "bf16")
_FORMS = {"forward": {}, "backward": {"direction": "backward"}, "int8": {"dtype_y": "int8"}, "fp8": {"dtype_y": "fp8"}}
_SETS = {f"norm-{part}-{form}-{dtype}": (part, form, dtype) for part in PARTS for form in _FORMS for dtype in _DTYPES}


def _records(named: str) -> Iterator[Record]:
    part, form, dtype = _SETS[named]
    for place, model in enumerate(one for one in models() if one.part == part):
        kind = "rms" if model.gated and not model.bias else "layer"
        for number, tokens in enumerate(_TOKENS):
            # Every other norm follows a residual addition.
            yield {
                "kind": kind, "rows": tokens[(place + number) % len(tokens)], "columns": model.hidden,
                "bias": int(kind == "layer"), "residual": (place + number) % 2, "dtype": dtype, **_FORMS[form],
            }  # fmt: skip


NORM_SETS = ProblemSets(tuple(_SETS), _records)

"""Problems by key, such as ``gemm-held-out-bf16``, or from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.gemm import layer_problems
from kernelwright.tile_engine.problems.models import PARTS

# Of operands, and of results where they differ from GemmProblem's default.
_GEMM_DTYPES = {"fp32": "", "fp16": "", "bf16": "", "fp8": "bf16", "int8": ""}
_GEMM = {f"gemm-{part}-{dtype}": (part, dtype) for part in PARTS for dtype in _GEMM_DTYPES}
KEYS: tuple[str, ...] = tuple(_GEMM)


def problems(operation: Measurable, named: str) -> tuple[Record, ...]:
    """The records of a key of KEYS, or of the JSON file ``named``.

    A file holds a list of records, or an object with the list under ``problems``. ValueError for an unknown key, a
    file that cannot be read, an illegal record, or no record at all.
    """
    if named in _GEMM:
        part, dtype = _GEMM[named]
        shapes = dict.fromkeys((problem.m, problem.n, problem.k) for problem in layer_problems(part))
        types = {"dtype": dtype, "dtype_c": _GEMM_DTYPES[dtype]}
        raw: Sequence[Any] = [{"m": m, "n": n, "k": k, **types} for m, n, k in shapes]
    else:
        raw = _read(named)
    found = tuple(dict.fromkeys(_frozen(operation.read(_record(one))) for one in raw))
    if not found:
        raise ValueError(f"{named} holds no problem")
    return tuple(map(dict, found))


def _read(named: str) -> Sequence[Any]:
    path = Path(named)
    if not path.is_file():
        raise ValueError(f"{named!r} is neither a file nor a key; keys: {', '.join(KEYS)}")
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{named} is not JSON: {error}") from None
    listed = content.get("problems") if isinstance(content, Mapping) else content
    if not isinstance(listed, list):
        raise ValueError(f'{named} holds no list of problems; write [{{…}}, …] or {{"problems": [{{…}}, …]}}')
    return listed


def _record(one: object) -> Record:
    if not isinstance(one, Mapping):
        raise ValueError(f"a problem is an object, not {one!r}")
    return one


def _frozen(record: Record) -> tuple[tuple[str, Any], ...]:
    return tuple(record.items())

"""Problems by key, such as ``gemm-held-out-bf16``, or from a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.convolution import DIRECTIONS, conv_problems
from kernelwright.tile_engine.problems.convolution import LayerProblem as ConvLayerProblem
from kernelwright.tile_engine.problems.gemm import layer_problems
from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS

# Of operands, and of results where they differ from GemmProblem's default.
_GEMM_DTYPES = {"fp32": "", "fp16": "", "bf16": "", "fp8": "bf16", "int8": ""}
_GEMM = {f"gemm-{part}-{dtype}": (part, dtype) for part in PARTS for dtype in _GEMM_DTYPES}
_CONV_DTYPES = ("fp32", "fp16", "bf16")
_CONV = {
    f"conv-{part}-{direction}-{dims}d-{dtype}": (part, direction, dims, dtype)
    for part in PARTS
    for direction in DIRECTIONS
    for dims in (2, 3)
    for dtype in _CONV_DTYPES
}
# All directions in turns, so many problems of each number of dimensions.
_VALIDATION = {2: 250, 3: 50}
_VALIDATIONS = {f"conv-validation-{dtype}": dtype for dtype in _CONV_DTYPES}
KEYS: tuple[str, ...] = (*_GEMM, *_CONV, *_VALIDATIONS)
"""Each key is for one operation, which the first word names."""


def problems(operation: Measurable, named: str) -> tuple[Record, ...]:
    """The records of a key of KEYS, or of the JSON file ``named``.

    A file holds a list of records, or an object with the list under ``problems``. ValueError for an unknown key, a
    file that cannot be read, an illegal record, or no record at all.
    """
    if named in KEYS and not operation.name.startswith(named.partition("-")[0]):
        raise ValueError(f"{named!r} is a key of another operation than {operation.name}; choose it with --variant")
    if named in _CONV or named in _VALIDATIONS:
        raw: Sequence[Any] = _convolutions(named)
    elif named in _GEMM:
        part, dtype = _GEMM[named]
        shapes = dict.fromkeys((problem.m, problem.n, problem.k) for problem in layer_problems(part))
        types = {"dtype": dtype, "dtype_c": _GEMM_DTYPES[dtype]}
        raw = [{"m": m, "n": n, "k": k, **types} for m, n, k in shapes]
    else:
        raw = _read(named)
    found = tuple(dict.fromkeys(_frozen(operation.read(_record(one))) for one in raw))
    if not found:
        raise ValueError(f"{named} holds no problem")
    return tuple(map(dict, found))


def _convolutions(named: str) -> list[Record]:
    if named in _CONV:
        part, direction, dims, dtype = _CONV[named]
        return [_conv_record(one, direction, dtype) for one in conv_problems(part, dims)]
    found: list[Record] = []
    for dims, most in _VALIDATION.items():
        posed = conv_problems(HELD_OUT, dims)
        step = max(1, len(posed) // most)
        chosen = posed[::step][:most]
        found += [
            _conv_record(one, DIRECTIONS[place % len(DIRECTIONS)], _VALIDATIONS[named])
            for place, one in enumerate(chosen)
        ]
    return found


def _conv_record(one: ConvLayerProblem, direction: str, dtype: str) -> Record:
    axes = "dhw"[3 - one.dims :]
    layer = one.layer
    extents = {f"{axis}i": layer.size for axis in axes} | dict.fromkeys("zyx"[3 - one.dims :], layer.filter)
    along = {"stride": layer.stride, "pad": layer.padding, "dilation": layer.dilation}
    moved = {f"{word}_{axis}": value for word, value in along.items() for axis in axes}
    counts = {"n": one.images, "c": layer.c, "k": layer.k, "g": layer.groups}
    return {"direction": direction, **counts, **extents, **moved, "dtype": dtype}


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

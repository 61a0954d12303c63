"""The attention structs of the C ABI in ctypes, and the words that stand for their numbers."""

from __future__ import annotations

import ctypes

from kernelwright.problems.attention import description, words
from kernelwright.problems.structs import members

VERSION = description.VERSION.value
_OPS = tuple(words.AttentionOp.names)
# By name here, by number in the C ABI. Callers do not ask for stages.
DIRECTIONS = dict(zip(("forward", "backward"), _OPS, strict=False))
APPEND = words.AttentionOp.ATTENTION_APPEND.number
STAGES = {op: "forward" if op < APPEND else "backward" for op in _OPS[2:] if op != APPEND}
MASKS = tuple(words.Mask.codes)
BIASES = tuple(words.Bias.codes)
QSCALES = tuple(words.QScale.codes)
PAGE_TABLES = tuple(words.PageTable.codes)
PAGE_LAYOUTS = tuple(words.PageLayout.codes)
ROPES = tuple(words.Rope.codes)


class AttentionStrides(ctypes.Structure):
    """``kw_attention_strides``."""

    _fields_ = members(description.STRIDES)


_STRIDES = {description.STRIDES.c_name: AttentionStrides}


class AttentionProblem(ctypes.Structure):
    """``kw_attention_problem``."""

    _fields_ = members(description.PROBLEM, _STRIDES)


class AttentionArgs(ctypes.Structure):
    """``kw_attention_args``."""

    _fields_ = members(description.ARGS)


class AppendProblem(ctypes.Structure):
    """``kw_append_problem``."""

    _fields_ = members(description.APPEND_PROBLEM, _STRIDES)


class AppendArgs(ctypes.Structure):
    """``kw_append_args``."""

    _fields_ = members(description.APPEND_ARGS)


class AttentionTraits(ctypes.Structure):
    """``kw_attention_traits``, which ``kw_kernel.traits`` of an attention kernel points to."""

    _fields_ = members(description.TRAITS)

"""The functions of libdispatcher_fmha_lib.so in ctypes, and its one struct."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int, c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

FORWARD, BACKWARD, APPEND_KV = range(3)
_POINTERS = (
    *("q", "k", "v", "o", "lse", "bias", "sinks", "seqstart_q", "seqstart_k", "seqlen_k_ptr", "page_table"),
    *(
        "page_indptr",
        "last_page_lengths",
        "d_o",
        "dq",
        "dk",
        "dv",
        "dbias",
        "k_cache",
        "v_cache",
        "q_out",
        "cos",
        "sin",
    ),
)


class Args(ctypes.Structure):
    """``fmha_dispatcher_args``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("version", c_uint32),
        ("data_type", c_char_p),
        *[(name, c_int32) for name in ("operation", "is_group_mode", "i_perm", "batch", "nhead_q", "nhead_k")],
        *[(name, c_int32) for name in ("seqlen_q", "seqlen_k", "hdim_q", "hdim_v", "mask_type")],
        *[(name, c_int32) for name in ("window_size_left", "window_size_right", "bias_type", "num_splits")],
        *[(name, c_int32) for name in ("is_deterministic", "page_block_size", "page_count", "page_table_width")],
        *[(name, c_int32) for name in ("cache_capacity", "rope_type", "rotary_dim", "rotary_places", "reserved")],
        *[(name, c_float) for name in ("scale", "logits_soft_cap", "p_drop", "reserved_float")],
        ("drop_seed", c_uint64),
        ("drop_offset", c_uint64),
        *[(name, c_void_p) for name in _POINTERS],
        *[(name, c_void_p) for name in ("descale_q", "descale_k", "descale_v", "scale_o")],
    ]


FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "last_error": (c_char_p, []),
    "initialize": (c_int, [c_char_p]),
    "initialize_from": (c_int, [c_char_p, c_char_p]),
    "cleanup": (None, []),
    "kernel_count": (c_int, []),
    "get_kernel_name": (c_int, [c_int, c_char_p, c_int]),
    "select_kernel": (c_int, [POINTER(Args), c_char_p, c_int]),
    "is_supported": (c_int, [POINTER(Args)]),
    "run": (c_int, [POINTER(Args), POINTER(c_float)]),
}


class Client:
    """``client.run(args, None)`` calls ``fmha_dispatcher_run``, and so on."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, f"fmha_dispatcher_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for type checkers: functions are set above
        raise AttributeError(name)


def args(**given: Any) -> Args:
    """A struct whose pointers are those of arrays. Masks without window are causal."""
    made = Args(ctypes.sizeof(Args), 2, b"fp32", window_size_left=-1, window_size_right=-1)
    if given.get("mask_type"):
        made.window_size_right = 0
    for name, value in given.items():
        setattr(made, name, value.ctypes.data if isinstance(value, np.ndarray) else value)
    made._keep = given  # the arrays live as long as the struct
    return made

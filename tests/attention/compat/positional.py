"""The positional functions of libdispatcher_fmha_lib.so in ctypes, as clients of the CK Tile dispatcher bind them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

SIZES = "batch nhead_q nhead_k seqlen_q seqlen_k hdim_q hdim_v"
# Arguments in their order: pointers, then whole numbers but for `scale` and `data_type`; time_ms is the last one.
ARGUMENTS = {
    "run_fwd": (
        "q k v o",
        f"{SIZES} scale mask_type bias_type has_lse has_dropout traits_hdim_q traits_hdim_v is_v_rowmajor perm "
        "data_type is_group_mode window_left window_right has_logits has_sink has_skip",
    ),
    "run_bwd": (
        "q k v o lse do dq dk dv",
        f"{SIZES} scale data_type mask_type bias_type has_dropout has_dbias is_deterministic is_group_mode "
        "is_store_randval tile_n0",
    ),
    "run_splitkv": (
        "q k v o",
        f"{SIZES} scale mask_type num_splits is_v_rowmajor data_type has_lse is_group_mode perm has_logits bias_type "
        "has_sink paged_kv page_block_size window_left window_right",
    ),
    "run_pagedkv": (
        "q k v o",
        f"{SIZES} scale mask_type page_block_size is_v_rowmajor data_type has_lse has_logits has_sink "
        "skip_min_seqlen_q bias_type",
    ),
    "run_appendkv": (
        "q knew vnew",
        "batch nhead_q nhead_k seqlen_q seqlen_knew hdim_q hdim_v is_v_rowmajor rope_type paged_kv page_block_size "
        "data_type",
    ),
    "run_batch_prefill": (
        "q k v o",
        f"{SIZES} scale mask_type bias_type page_block_size kv_layout kv_lookup is_v_rowmajor data_type has_lse "
        "has_dropout has_logits has_sink skip_min_seqlen_q",
    ),
}
PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "initialize": (c_int, [c_char_p]),
    "kernel_count": (c_int, []),
    "cleanup": (None, []),
}
DEFAULTS = {
    "is_v_rowmajor": 1, "perm": 1, "window_left": -1, "window_right": -1, "data_type": b"fp32", "scale": 0.5,
    "page_block_size": 16, "kv_layout": 1, "num_splits": 4, "tile_n0": 128,
}  # fmt: skip


def _type(name: str) -> Any:
    return {"scale": c_float, "data_type": c_char_p}.get(name, c_int)


class PositionalClient:
    """Binds every function when it is made, as the Python client there does."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        for name, (result, arguments) in PLAIN.items():
            function = getattr(self.library, f"fmha_dispatcher_{name}")
            function.restype, function.argtypes = result, arguments
        for name, (pointers, numbers) in ARGUMENTS.items():
            function = getattr(self.library, f"fmha_dispatcher_{name}")
            types = [c_void_p] * len(pointers.split()) + [_type(number) for number in numbers.split()]
            function.restype, function.argtypes = c_int, [*types, POINTER(c_float)]
        self.library.fmha_dispatcher_last_error.restype = c_char_p

    def status(self, function: str, **given: Any) -> int:
        """The result of a call; arrays and addresses by the names of pointers, the rest as in ``DEFAULTS`` or 0."""
        pointers, numbers = (part.split() for part in ARGUMENTS[function])
        assert {*given} <= {*pointers, *numbers, "time_ms"}, given.keys()
        addresses = [one.ctypes.data if isinstance(one := given.get(name), np.ndarray) else one for name in pointers]
        values = [given.get(name, DEFAULTS.get(name, 0)) for name in numbers]
        called = getattr(self.library, f"fmha_dispatcher_{function}")
        result: int = called(*addresses, *values, given.get("time_ms"))
        return result

    def run(self, function: str, **given: Any) -> None:
        """A call that has to succeed, and takes some time."""
        time = c_float(-1)
        assert self.status(function, **given, time_ms=ctypes.byref(time)) == 0, self.reason()
        assert time.value > 0

    def reason(self) -> str:
        """Why the last call of this thread failed."""
        text: bytes = self.library.fmha_dispatcher_last_error()
        return text.decode()

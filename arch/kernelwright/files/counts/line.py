"""One instruction as counting sees it, whether decoded from machine code or read from assembly."""

from __future__ import annotations

import re
from dataclasses import dataclass

_KINDS = (
    ("matrix", ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")),
    ("other", ("v_nop", "s_nop", "s_endpgm", "s_sleep", "s_setprio", "s_clause", "s_delay_alu", "s_sendmsg")),
    ("other", ("s_dcache_", "s_icache_", "s_gl1_", "s_wakeup", "s_ttrace", "s_version", "s_prefetch", "s_set_")),
    ("other", ("s_incperf", "s_decperf", "s_wait_alu", "s_wait_idle", "s_waitcnt_depctr", "s_buffer_prefetch")),
    ("other", ("buffer_gl", "buffer_inv", "buffer_wb", "global_inv", "global_wb")),
    ("scalar", ("v_s_",)),  # scalar functions that the vector unit computes
    ("vector", ("v_",)),
    ("lds", ("ds_",)),
    ("scratch", ("scratch_",)),
    ("global", ("buffer_", "global_", "flat_")),
    ("wait", ("s_wait",)),
    ("barrier", ("s_barrier",)),
    ("branch", ("s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call")),
    ("scalar", ("s_",)),
)
_WIDTH = {"ubyte": 1, "sbyte": 1, "byte": 1, "short": 2, "ushort": 2, "sshort": 2, "dword": 4, "dwordx2": 8}
_WIDTH |= {"dwordx3": 12, "dwordx4": 16}
_BITS = re.compile(r"[bui](8|16|32|64|96|128)$")
_TRANSCENDENTAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)(_iflag)?_(f16|f32|f64)$|v_(exp|log)_legacy_f32$")


@dataclass(frozen=True)
class Line:
    """An instruction of a function. ``name`` lacks the encoding suffix (``v_add_u32``, not ``v_add_u32_e64``).

    ``goal``: the index of the line that a branch may go to; None if that is not in the function. ``narrow``: a matrix
    instruction both of whose operands have four or six bits. ``to_lds``: a load whose data goes to LDS.
    """

    name: str
    goal: int | None = None
    narrow: bool = False
    to_lds: bool = False

    @property
    def branches(self) -> bool:
        """Whether control may go anywhere other than to the next line."""
        return self.name.startswith(("s_branch", "s_cbranch"))

    @property
    def leaves(self) -> bool:
        """Whether control never reaches the next line."""
        return self.name.startswith(("s_branch", "s_endpgm", "s_setpc"))


def kind_of(name: str) -> str:
    """Return the kind: one of ``matrix vector scalar lds global scratch wait barrier branch other``."""
    return next((kind for kind, starts in _KINDS if name.startswith(starts)), "other")


def is_transcendental(name: str) -> bool:
    """Return whether a vector instruction runs at a quarter of the lanes."""
    return bool(_TRANSCENDENTAL.match(name))


def access_of(line: Line) -> tuple[str, int]:
    """The kind of a memory access and how often: ``("read 16", 1)``, ``("load to LDS 4", 1)``, ``("atomic", 1)``.

    A pair of addresses (``ds_read2``) is two accesses. An instruction that moves data between lanes has its own verb
    and no width.
    """
    space, verb, what = (*line.name.split("_", 2), "")[:3]
    if space == "ds":
        return _lds_access(verb, what)
    if "atomic" in line.name:
        return "atomic", 1
    if verb == "load":
        lds = line.to_lds or what.startswith("lds_")
        return f"{'load to LDS' if lds else 'load'} {_width(what.removeprefix('lds_'))}", 1
    return (f"store {_width(what)}" if verb == "store" else verb), 1


def _lds_access(verb: str, what: str) -> tuple[str, int]:
    reads = verb.startswith(("read", "load"))
    if (not reads and not verb.startswith(("write", "store"))) or verb == "storexchg":
        return verb, 1
    way = "read" if reads else "write"
    if "2addr" in what or verb.startswith(("read2", "write2")):
        return f"{way} {_width(what)}", 2
    if "_tr_" in f"_{what}":
        return "read transposed 8", 1
    return f"{way} {_width(what)}", 1


def _width(what: str) -> int:
    """Return the bytes per lane of ``dwordx4``, ``b128``, ``u16_d16_hi``, ``d16_b8``, ``short_d16``."""
    parts = [part for part in what.split("_") if part not in ("d16", "hi", "2addr", "stride64")]
    bits = _BITS.match(parts[-1]) if parts else None
    if bits:
        return int(bits[1]) // 8
    return _WIDTH[parts[-1]]

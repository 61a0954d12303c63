"""LDS addresses that a kernel uses, as far as they follow from its lanes alone.

Constant propagation over the blocks of a function (Kildall 1973): a register is known at a point if every path to it
gives it the same value. Values start with the number of the work-item in v0; loaded values, and instructions that are
not modelled, are unknown. All waves of a workgroup are computed at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from kernelwright.codegen.resources.amd.arithmetic import (
    COMPARE,
    ONE,
    THREE,
    TWO,
    Words,
    bitop3,
    mbcnt,
    signed,
    wrapped,
)
from kernelwright.codegen.resources.amd.assembly import Statement, lines
from kernelwright.files.counts.loops import blocks

State = dict[str, Words]
"""Known registers by name (``v3``, ``s2``, ``m0``), ``scc``, and spilled ones by slot (``scratch 84``).

``exec`` is present while all lanes are active.
"""
_REGISTER = re.compile(r"([vas])(\d+)$")
_RANGE = re.compile(r"([vas])\[(\d+):(\d+)\]$")
_NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)$")
_INTEGERS = re.compile(r"(?:v_cmp|s_cmpk?)_(eq|ne|lg|lt|le|gt|ge)_([iu])32$")
_KEEPS_SCC = re.compile(r"s_(mov|movk|mul|cselect|load|nop|wait|barrier|set|c?branch|delay|clause|pack)|[^s]")
_NO_RESULT = re.compile(
    r"ds_(write|store)|buffer_store|global_store|flat_store|scratch_store|buffer_wb|buffer_inv|s_cmp|s_bitcmp|s_wait"
    r"|s_barrier|s_nop|s_c?branch|s_setprio|s_endpgm|s_sleep|s_sendmsg|s_clause|s_delay|s_set|s_dcache|global_load_lds"
)
_TWO_RESULTS = ("_co_", "v_div_scale", "v_mad_u64", "v_mad_i64", "swap")
_CARRIES: Mapping[str, Callable[[Words, Words], Words]] = {
    "v_add_co_u32": lambda left, right: left + right,
    "v_sub_co_u32": lambda left, right: left - right,
    "v_subrev_co_u32": lambda left, right: right - left,
}
_FULL = np.ones((1, 1), np.int64)


def lds_bases(function: Sequence[Statement], waves: int, lanes: int) -> dict[int, Words]:
    """Return index of an LDS instruction → the bytes in its address register, (waves, lanes), where these are known."""
    if not function:
        return {}
    ranges, following = blocks(lines(function))
    first = np.arange(waves * lanes, dtype=np.int64).reshape(waves, lanes)
    entries: list[State | None] = [None] * len(ranges)
    entries[0] = {"v0": first, "exec": _FULL}
    waiting = [0]
    while waiting:
        block = waiting.pop(0)
        state = dict(entries[block] or {})
        for at in ranges[block]:
            execute(function[at], state, lanes)
        for goal in following[block]:
            met = _meet(entries[goal], state)
            if met is not None:
                entries[goal] = met
                if goal not in waiting:
                    waiting.append(goal)
    return dict(_read(function, ranges, entries, waves, lanes))


def _read(
    function: Sequence[Statement],
    ranges: Sequence[range],
    entries: Sequence[State | None],
    waves: int,
    lanes: int,
) -> Iterator[tuple[int, Words]]:
    for block, entry in zip(ranges, entries, strict=True):
        if entry is None:
            continue
        state = dict(entry)
        for at in block:
            one = function[at]
            register = address_register(one)
            addresses = state.get(register) if register else None
            if addresses is not None and "exec" in state:
                yield at, np.broadcast_to(addresses, (waves, lanes))
            execute(one, state, lanes)


def address_register(one: Statement) -> str | None:
    """Return the address register of an LDS instruction that reads or writes; None for others."""
    name = one.line.name
    if name.startswith(("ds_read", "ds_load")):
        return one.operands[1]
    return one.operands[0] if name.startswith(("ds_write", "ds_store_")) else None


def _meet(old: State | None, new: Mapping[str, Words]) -> State | None:
    """Return the values on which both states agree; None if they are those of ``old``."""
    if old is None:
        return dict(new)
    kept = {key: value for key, value in old.items() if key in new and _same(value, new[key])}
    return None if len(kept) == len(old) else kept


def _same(first: Words, second: Words) -> bool:
    return first is second or (first.dtype == second.dtype and np.array_equal(first, second))


def execute(one: Statement, state: State, lanes: int) -> None:
    """Change ``state`` as an instruction does."""
    if one.parts:
        results = [(part, _result(part, state, lanes)) for part in one.parts]
        for part, value in results:
            _write(part.operands[0], value, state)
        return
    name = one.line.name
    if not _KEEPS_SCC.match(name):
        _put("scc", _compared(one, one.operands, state) if name.startswith("s_cmp") else None, state)
    if name.startswith(("s_swappc", "s_call")):
        state.clear()
    elif "saveexec" in name:
        saved = state.pop("exec", None)
        for key in _registers(one.operands[0]):
            _put(key, saved, state)
    elif name.startswith("v_cmpx") or one.operands[:1] in (("exec",), ("exec_lo",)):
        _set_exec(one, state)
    elif name in ("s_mov_b64", "s_mov_b32") and one.operands[1:] in (("exec",), ("exec_lo",)):
        for key in _registers(one.operands[0]):
            _put(key, state.get("exec"), state)
    elif name.startswith("scratch_"):
        _spill(one, state)
    elif name in _CARRIES:
        value, carry = _with_carry(one, state) if "exec" in state else (None, None)
        _write(one.operands[0], value, state)
        _write(one.operands[1], carry, state)
    elif one.operands and not _NO_RESULT.match(name) and not one.line.to_lds:
        low = _low_word(one, state) if name == "v_mad_u64_u32" else None
        value = _result(one, state, lanes)
        vector = name.startswith("v_") and not name.startswith(("v_readfirstlane", "v_cmp", "v_readlane"))
        _write(one.operands[0], None if vector and "exec" not in state else value, state)
        if name.startswith("v_") and any(word in name for word in _TWO_RESULTS):
            _write(one.operands[1], None, state)
        if name == "v_mad_u64_u32" and low is not None and "exec" in state:
            state[_registers(one.operands[0])[0]] = low


def _with_carry(one: Statement, state: Mapping[str, Words]) -> tuple[Words | None, Words | None]:
    """Return a sum or difference of two words, and for each lane whether it overflowed 32 bits."""
    if one.opaque or one.modifiers:
        return None, None
    left, right = (_source(text, state) for text in one.operands[2:])
    if left is None or right is None:
        return None, None
    exact = _CARRIES[one.line.name](left, right)
    kept = wrapped(exact)
    return kept, COMPARE["ne"](exact, kept)


def _spill(one: Statement, state: State) -> None:
    """Execute stores to a scratch slot, and loads from one; a store at a varying address may reach any slot."""
    stores = one.line.name.startswith("scratch_store")
    fixed = [text == "off" for text in one.operands] == [stores, not stores, True]
    registers = _registers(one.operands[1 if stores else 0])
    if stores and not fixed:
        for key in [key for key in state if key.startswith("scratch")]:
            del state[key]
        return
    small = not one.line.name.endswith(("dword", "dwordx2", "dwordx3", "dwordx4", "b32", "b64", "b96", "b128"))
    for at, register in enumerate(registers):
        slot = f"scratch {int(one.modifiers.get('offset', '0')) + 4 * at}"
        source, goal = (register, slot) if stores else (slot, register)
        known = fixed and not small and "exec" in state
        _put(goal, state.get(source) if known else None, state)


def _set_exec(one: Statement, state: State) -> None:
    """Make all lanes active again where a mask that had all of them is restored."""
    sources = [key for text in one.operands[1:] for key in _registers(text)]
    back = one.line.name in ("s_or_b64", "s_mov_b64", "s_or_b32", "s_mov_b32")
    if back and (any(state.get(key) is _FULL for key in sources) or one.operands[1:] == ("-1",)):
        state["exec"] = _FULL
    else:
        state.pop("exec", None)


def _result(one: Statement, state: State, lanes: int) -> Words | None:
    """Return the new value of the first operand; None if it is not known."""
    name = one.line.name
    if one.opaque or set(one.modifiers) - {"bitop3"}:
        return None
    if name == "v_cndmask_b32":
        return _chosen(one, state)
    if name.startswith("s_cselect_"):
        return _selected(one, state)
    if _INTEGERS.match(name):
        return _compared(one, one.operands[1:], state)
    sources = [_source(text, state) for text in one.operands[1:]]
    if not sources or any(value is None for value in sources):
        return None
    values = [value for value in sources if value is not None]
    if name.startswith("v_mbcnt_"):
        made = mbcnt(name, values[0], values[1], lanes)
    elif name == "v_bitop3_b32":
        made = bitop3(int(one.modifiers.get("bitop3", "0"), 0), *values)
    else:
        table: Mapping[str, object] = {1: ONE, 2: TWO, 3: THREE}.get(len(values), {})
        function = table.get(name)
        made = function(*values) if callable(function) else None
    return None if made is None else wrapped(made)


def _compared(one: Statement, sources: Sequence[str], state: Mapping[str, Words]) -> Words | None:
    """Return the truth of an integer comparison, for each lane or, for scalars, for each wave."""
    match = _INTEGERS.match(one.line.name)
    left, right = (_source(text, state) for text in (*sources, "", "")[:2])
    if match is None or left is None or right is None:
        return None
    both = (signed(left), signed(right)) if match[2] == "i" else (left, right)
    return COMPARE[match[1]](*both)


def _selected(one: Statement, state: Mapping[str, Words]) -> Words | None:
    """``s_cselect``: the first source where SCC is set; masks of all lanes or none stay lane truth values."""
    chosen, texts = state.get("scc"), one.operands[1:]
    if chosen is None:
        return None
    if set(texts) <= {"-1", "0"}:
        return np.where(chosen, texts[0] == "-1", texts[1] == "-1")
    first, second = (_source(text, state) for text in texts)
    return None if first is None or second is None else np.where(chosen, first, second)


def _low_word(one: Statement, state: Mapping[str, Words]) -> Words | None:
    """``v_mad_u64_u32``: the lower 32 bits of the first factor times the second, plus a pair."""
    _, _, first, second, pair = one.operands
    addend = _source((_registers(pair) or [pair])[0], state)
    left, right = _source(first, state), _source(second, state)
    if left is None or right is None or addend is None:
        return None
    return wrapped(signed(left) * signed(right) + addend)


def _chosen(one: Statement, state: Mapping[str, Words]) -> Words | None:
    """``v_cndmask_b32``: the second source where the mask is set; dual-issue halves read VCC without naming it."""
    _, no, yes, mask = (*one.operands, "vcc")[:4]
    keys = _registers(mask)
    chosen = state.get(keys[0]) if keys else None
    first, second = _source(no, state), _source(yes, state)
    if chosen is None or chosen.dtype != np.bool_ or first is None or second is None:
        return None
    return np.where(chosen, second, first)


def _source(text: str, state: Mapping[str, Words]) -> Words | None:
    if _NUMBER.match(text):
        return wrapped(np.full((1, 1), int(text, 0), np.int64))
    words = state.get(text)
    return None if words is None or words.dtype == np.bool_ or words is _FULL else words


def _write(operand: str, value: Words | None, state: State) -> None:
    """Write a value to registers; without a value, all that are written become unknown, and a mask fills a pair."""
    names = _registers(operand)
    masks = value is not None and value.dtype == np.bool_
    for key in names:
        _put(key, value if len(names) == 1 or masks else None, state)


def _put(key: str, value: Words | None, state: State) -> None:
    if value is None:
        state.pop(key, None)
    else:
        state[key] = value


def _registers(operand: str) -> list[str]:
    if operand in ("vcc", "vcc_lo"):
        return ["vcc"]
    if operand == "m0" or _REGISTER.match(operand):
        return [operand]
    match = _RANGE.match(operand)
    return [f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1)] if match else []

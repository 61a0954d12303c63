from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernelwright.codegen.batching.amd_assembly import cut
from kernelwright.codegen.batching.batch import UncuttableError

UNIT = (
    '\t.type\t__hip_cuid_,@object\n\t.section\t.bss,"aw",@nobits\n__hip_cuid_:\n\t.byte\t0\n\t.size\t__hip_cuid_, 1\n\n'
)


def function(name: str, number: int, branch: int | None = None) -> str:
    label = f".LBB{number}_7:"
    far = f"\ts_add_u32 s4, s4, (.LBB{number}_7-.Lpost_getpc{branch})&4294967295\n" if branch is not None else ""
    return (
        f"\t.text\n\t.protected\t{name} ; -- Begin function {name}\n{name}:\n; %bb.0:\n{far}"
        f"{label:<40}; =>This Inner Loop Header: Depth=1\n; %bb.1:  ;   in Loop: Header=BB{number}_7 Depth=1\n"
        f"\ts_cbranch_scc1 .LBB{number}_7\n.Lfunc_end{number}:\n\t.size\t{name}, .Lfunc_end{number}-{name}\n"
        '\t.section\t.AMDGPU.csdata,"",@progbits\n; LBB1_1 is what a comment may say\n'
    )


def facts(symbol: str, first: bool) -> str:
    section = '\t.section\t.rodata,"a",@progbits\n' if first else ""
    name = f"{symbol}_facts"
    return f"\t.protected\t{name}\n\t.type\t{name},@object\n{section}{name}:\n\t.long\t1\n\t.size\t{name}, 4\n\n"


def assembly(symbols: Sequence[str], extra: str = "", objects: str = "") -> str:
    """What clang writes of kernels with two functions and a constant each; every second function has a long branch."""
    functions = [name for symbol in symbols for name in (f"{symbol}_gemm", f"{symbol}_sum")]
    parts = [function(name, number, number // 2 if number % 2 else None) for number, name in enumerate(functions)]
    addresses = [f"\t.addrsig_sym {name}\n" for name in (*(f"{symbol}_facts" for symbol in symbols), "__hip_cuid_")]
    entries = [f"  - .agpr_count: {len(name)}\n    .name:           {name}\n" for name in functions]
    return "".join(
        (
            '\t.amdgcn_target "x"\n\t.amdhsa_code_object_version 6\n',
            *parts,
            extra,
            "\t.text\n\t.p2alignl 6, 3212836864\n\t.fill 256, 4, 3212836864\n",
            '\t.section\t.AMDGPU.gpr_maximums,"",@progbits\n',
            "\t.set amdgpu.max_num_vgpr, 0\n\t.set amdgpu.max_num_sgpr, 0\n\t.text\n",
            *(facts(symbol, symbol == symbols[0]) for symbol in symbols),
            objects,
            UNIT,
            '\t.ident\t"clang"\n\t.section\t".note.GNU-stack","",@progbits\n\t.addrsig\n',
            *addresses,
            "\t.amdgpu_metadata\n---\namdhsa.kernels:\n",
            *entries,
            "amdhsa.target: x\namdhsa.version:\n  - 1\n...\n\n\t.end_amdgpu_metadata\n",
        )
    )


SYMBOLS = [f"kw_kernel_{number:016x}" for number in range(8)]


@pytest.mark.parametrize("count", [1, 2, 8])
def test_each_part_is_what_a_compile_of_one_kernel_gives(count: int) -> None:
    parts = cut(assembly(SYMBOLS[:count]), SYMBOLS[:count])
    assert parts == {symbol: assembly([symbol]) for symbol in SYMBOLS[:count]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (assembly(SYMBOLS[:2], function("shared", 4)), "shared belongs to 0 kernels"),
        (assembly(SYMBOLS[:2], objects=facts("table", False)), "table_facts belongs to 0 kernels"),
        (assembly(SYMBOLS[:3]), f"{SYMBOLS[2]}_gemm belongs to 0 kernels"),
        (assembly(SYMBOLS[:1]), f"{SYMBOLS[1]}_: 0 functions"),
        (assembly(SYMBOLS[:2]).replace("max_num_sgpr, 0", "max_num_sgpr, 9"), "nothing of the form"),
        (assembly(SYMBOLS[:2], "\t.section .text.f\n\t.p2align 2 ; -- Begin function f\n"), "section of its own"),
        (assembly(SYMBOLS[:2]).replace("scc1 .LBB2_7", "scc1 .LBB1_7"), "LBB1_7 is a label of another function"),
        (assembly(SYMBOLS[:2], objects="\t.globl\tx\n\n"), "an object is not understood"),
        (assembly(SYMBOLS[:2]) + "\t.text\n\tx\n", "something follows the metadata"),
        ("", "nothing of the form"),
    ],
)
def test_what_is_shared_or_unknown_is_not_cut(text: str, words: str) -> None:
    with pytest.raises(UncuttableError, match=words):
        cut(text, SYMBOLS[:2])


def test_a_kernel_whose_symbol_begins_another_is_told_apart() -> None:
    symbols = ["kw_kernel_1", "kw_kernel_12"]
    assert cut(assembly(symbols), symbols) == {symbol: assembly([symbol]) for symbol in symbols}

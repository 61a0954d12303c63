from __future__ import annotations

import random
import struct

import pytest

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.resources import cpu
from kernelwright.codegen.resources.cpu import ReportError
from kernelwright.codegen.resources.x86 import DecodeError, decode

# What GNU as makes of one instruction of each form, with what it is.
LISTING = """\
90 nop
f30f1efa endbr64
55 push %rbp
4881ec34120000 sub $0x1234,%rsp
48b88877665544332211 movabs $0x1122334455667788,%rax
b905000000 mov $0x5,%ecx
66c7070700 movw $0x7,(%rdi)
c7848f0001000007000000 movl $0x7,0x100(%rdi,%rcx,4)
488d1520000000 lea 0x20(%rip),%rdx
486bd064 imul $0x64,%rax,%rdx
4869d0e8030000 imul $0x3e8,%rax,%rdx
40f6c701 test $0x1,%dil
f744240800000100 testl $0x10000,0x8(%rsp)
48f7d8 neg %rax
48c1e003 shl $0x3,%rax
4983ff7f cmp $0x7f,%r15
0f85c2000000 jne 0x11d
e927010000 jmp 0x187
e8fbffffff call 0x60
c3 ret
0f0b ud2
480f44d8 cmove %rax,%rbx
0f94c0 sete %al
0fb606 movzbl (%rsi),%eax
480fbae003 bt $0x3,%rax
660fefc8 pxor %xmm0,%xmm1
660f70c81b pshufd $0x1b,%xmm0,%xmm1
660ff5c8 pmaddwd %xmm0,%xmm1
660f3a08c801 roundps $0x1,%xmm0,%xmm1
660f3800c8 pshufb %xmm0,%xmm1
f00fc107 lock xadd %eax,(%rdi)
f3a4 rep movsb %ds:(%rsi),%es:(%rdi)
660f1f0400 nopw (%rax,%rax,1)
c5f877 vzeroupper
c5fc105c2440 vmovups 0x40(%rsp),%ymm3
c4417828c7 vmovaps %xmm15,%xmm8
c4e26db8d9 vfmadd231ps %ymm1,%ymm2,%ymm3
c4620db828 vfmadd231ps (%rax),%ymm14,%ymm13
c4e269b9d9 vfmadd231ss %xmm1,%xmm2,%xmm3
c5edf5d9 vpmaddwd %ymm1,%ymm2,%ymm3
c5fd70d101 vpshufd $0x1,%ymm1,%ymm2
c4e36d06d901 vperm2f128 $0x1,%ymm1,%ymm2,%ymm3
c4e27d18448f04 vbroadcastss 0x4(%rdi,%rcx,4),%ymm0
c4e2e0f2c8 andn %rax,%rbx,%rcx
c4e3fbf0d803 rorx $0x3,%rax,%rbx
62226d40b8f9 vfmadd231ps %zmm17,%zmm18,%zmm31
62f26d58b85810 vfmadd231ps 0x40(%rax){1to16},%zmm2,%zmm3
62626d48a8742440 vfmadd213ps 0x1000(%rsp),%zmm2,%zmm30
62f25e4052d9 vdpbf16ps %zmm1,%zmm20,%zmm3
62f25e50525f01 vdpbf16ps 0x4(%rdi){1to16},%zmm20,%zmm3
62f26d4850d9 vpdpbusd %zmm1,%zmm2,%zmm3
62f66d48b8d9 vfmadd231ph %zmm1,%zmm2,%zmm3
62f17c49116c2402 vmovups %zmm5,0x80(%rsp){%k1}
c5f892c8 kmovw %eax,%k1
62f36d4825d9ff vpternlogd $0xff,%zmm1,%zmm2,%zmm3
62f27e4872d1 vcvtneps2bf16 %zmm1,%ymm2
"""
CODES = [bytes.fromhex(line.split()[0]) for line in LISTING.splitlines()]
TEXTS = [line.partition(" ")[2] for line in LISTING.splitlines()]
PACKED = ("vfmadd231ps", "vfmadd213ps", "vfmadd231ph", "vdpbf16ps", "vpdpbusd", "vpmaddwd")
PRODUCTS = [index for index, text in enumerate(TEXTS) if text.startswith(PACKED)]


def elf(*functions: bytes) -> bytes:
    """An ELF object with a section of code for each function, and one of data that looks like code."""
    names = b"\0.text\0.rodata\0.shstrtab\0"
    contents = [(1, 6, code) for code in functions] + [(7, 2, CODES[PRODUCTS[0]]), (15, 0, names)]
    body, headers = b"", [bytes(64)]
    for name, flags, data in contents:
        kind = 3 if flags == 0 else 1
        headers.append(struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        body += data
    head = b"\x7fELF\2\1\1" + bytes(9)
    fields = (1, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(headers), len(headers) - 1)
    return head + struct.pack("<HHIQQQIHHHHHH", *fields) + body + b"".join(headers)


@pytest.mark.parametrize("seed", range(20))
def test_instructions_end_where_the_next_one_begins(seed: int) -> None:
    order = random.Random(seed).choices(range(len(CODES)), k=200)
    instructions = list(decode(b"".join(CODES[index] for index in order)))
    assert [one.length for one in instructions] == [len(CODES[index]) for index in order]


def test_every_form_of_the_listing_is_one_instruction() -> None:
    for code, text in zip(CODES, TEXTS, strict=True):
        assert [one.length for one in decode(code)] == [len(code)], text
    assert len(PRODUCTS) > 8


@pytest.mark.parametrize("index", range(len(CODES)))
def test_what_is_cut_off_is_refused(index: int) -> None:
    for end in range(1, len(CODES[index])):
        prefix = CODES[index][:end]
        try:
            assert sum(one.length for one in decode(prefix)) == end  # a shorter instruction, as 66 90 begins with 66
        except DecodeError as error:
            assert "is cut off" in str(error)


@pytest.mark.parametrize(
    ("text", "registers"),
    [
        ("vfmadd231ps %ymm1,%ymm2,%ymm3", (3, 2, 1)),
        ("vfmadd231ps (%rax),%ymm14,%ymm13", (13, 14)),
        ("vfmadd231ps %zmm17,%zmm18,%zmm31", (31, 18, 17)),
        ("vdpbf16ps %zmm1,%zmm20,%zmm3", (3, 20, 1)),
    ],
)
def test_registers_of_vector_instructions(text: str, registers: tuple[int, ...]) -> None:
    (instruction,) = decode(CODES[TEXTS.index(text)])
    assert instruction.registers == registers


def test_multiply_adds_registers_and_bytes_are_counted() -> None:
    code = b"".join(CODES)
    report = cpu.read_report(elf(code, CODES[PRODUCTS[0]], b"\xc3"), Expectation(matrix_instructions=True))
    named = {"%ymm1", "%ymm2"}
    assert report["matrix_instructions"] == len(PRODUCTS) + 1
    assert report["code_bytes"] == len(code) + len(CODES[PRODUCTS[0]]) + 1
    assert len(named) < report["registers"] <= 32


@pytest.mark.parametrize(
    ("code", "frame"),
    [
        ("4883ec40", 0x40),
        ("4881ec40070000 4881c440070000", 0x740),
        ("4883c480 4883ec80", 128),
        ("4881ec40070000 c3 4883ec60 c3", 0x740),
        ("4983ec40 4883ef40 48f7d8 4883c440 ba4883ec40", 0),  # other registers, upwards, bytes within an instruction
    ],
)
def test_the_largest_frame_is_reported(code: str, frame: int) -> None:
    assert cpu.read_report(elf(CODES[PRODUCTS[0]] + bytes.fromhex(code)), Expectation())["stack_bytes"] == frame


def test_what_is_no_kernel_is_refused() -> None:
    for data, words in (
        (b"", "not an ELF object"),
        (b"\x7fELF" + bytes(10), "not an ELF object"),
        (elf(b"\xc3"), "no vector multiply-add"),
        (elf(b"\x48"), "is cut off"),
    ):
        with pytest.raises(ReportError, match=words):
            cpu.read_report(data, Expectation(matrix_instructions=True))

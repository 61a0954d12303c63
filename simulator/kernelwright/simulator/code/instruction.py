"""One decoded instruction: name, operands and bit fields, independent of the library that decodes it."""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field


class File(enum.Enum):
    """The register file, or the kind of constant, of an operand."""

    VGPR = "v"
    AGPR = "a"
    SGPR = "s"  # scalar operand numbers 0-127: SGPRs, VCC (106), TTMPs (108-123), M0, null, EXEC (126)
    INLINE = "inline"  # a constant inside the operand encoding; `value` holds an int or a float
    LITERAL = "literal"  # 32 bits after the instruction; `value` holds them
    SCC = "scc"
    VCCZ = "vccz"
    EXECZ = "execz"
    SPECIAL = "special"  # apertures and the like; no semantics unless an instruction gives it some


@dataclass(frozen=True)
class Operand:
    """``count`` registers from ``index`` of ``file``. ``form`` is the ISA's operand format: F32, B64, U16, PK_F16, …

    ``high``: the upper half of the register (RDNA's true16 operands of 16-bit instructions).
    """

    file: File
    index: int = 0
    count: int = 1
    form: str = "ANY"
    bits: int = 32
    value: int | float = 0
    high: bool = False

    @property
    def constant(self) -> bool:
        """Whether its value is known without a wave."""
        return self.file in (File.INLINE, File.LITERAL)

    def word(self) -> int:
        """The 32 bits of a constant, as a 32-bit operand reads them (a float as its fp32 encoding)."""
        if isinstance(self.value, float):
            return int(struct.unpack("<I", struct.pack("<f", self.value))[0])
        return self.value & 0xFFFFFFFF

    def __str__(self) -> str:
        """``v[4:5]``, ``s3``, ``1.0``."""
        if self.constant:
            return str(self.value)
        if self.file in (File.VGPR, File.AGPR, File.SGPR):
            last = self.index + self.count - 1
            name = f"{self.file.value}{self.index}"
            name = name if self.count == 1 else f"{self.file.value}[{self.index}:{last}]"
            return name + (".h" if self.high else "")
        return str(self.file.value)


@dataclass(frozen=True)
class Instruction:
    """``name`` is lower case without an encoding suffix (``v_add_u32``, not ``v_add_u32_e64``).

    ``encoding`` is the instruction format (``VOP3P_MFMA``); ``fields`` its raw bit fields that are not operands
    (``offset``, ``neg``, ``abs``, ``clmp``, …). ``parts`` are the two halves of a dual-issue instruction (VOPD).
    """

    pc: int
    size: int
    encoding: str
    name: str
    operands: Mapping[str, Operand] = field(default_factory=dict)
    fields: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[Instruction, ...] = ()

    def get(self, name: str, default: int = 0) -> int:
        """A raw bit field, or ``default`` if this encoding has none of that name."""
        return self.fields.get(name, default)

    def __str__(self) -> str:
        """Name, operands and nonzero fields, as in faults and traces."""
        if self.parts:
            return " :: ".join(map(str, self.parts))
        shown = ", ".join(f"{key}={value}" for key, value in self.operands.items())
        extra = " ".join(f"{key}:{value}" for key, value in self.fields.items() if value)
        return " ".join(part for part in (self.name, shown, extra) if part)

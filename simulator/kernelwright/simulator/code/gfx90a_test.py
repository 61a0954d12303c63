from __future__ import annotations

import pytest

from kernelwright.simulator.code.decode import decode_one
from kernelwright.simulator.code.gfx90a import translated
from kernelwright.simulator.code.target import TARGETS


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("0100c1d102071204", "v_mad_f32 vdst=v1, src0=v2, src1=v3, src2=v4"),
        ("0207022c", "v_mac_f32 vdst=v1, src0=v2, vsrc1=v3"),
        ("0207023045230100", "v_madak_f32 vdst=v1, src0=v2, vsrc1=v3, literal=74565"),
        ("0207022e45230100", "v_madmk_f32 vdst=v1, src0=v2, vsrc1=v3, literal=74565"),
        ("010016d102070200", "v_mac_f32 vdst=v1, src0=v2, src1=v3, src2=s0"),
        ("fa06022c021101ff", "v_mac_f32 vdst=v1, src0=special, vsrc1=v3, vsrc0=v2"),
        ("0207026e", "v_dot2c_f32_f16 vdst=v1, src0=v2, vsrc1=v3"),
        ("0100cbd102071204", "v_fma_f32 vdst=v1, src0=v2, src1=v3, src2=v4"),
    ],
)
def test_machine_code_of_the_assembler(code: str, text: str) -> None:
    assert str(decode_one(bytes.fromhex(code), TARGETS["gfx90a"], 0)).startswith(text)


def test_later_chips_keep_their_meaning() -> None:
    code = bytes.fromhex("0207023045230100")
    assert decode_one(code, TARGETS["gfx942"], 0).name == "v_fmaak_f32"
    assert translated(bytes.fromhex("0207026e")) == (bytes.fromhex("0207026e"), None)

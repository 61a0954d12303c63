"""``public.pyi`` is what the modules of operators offer, and ``kernelwright.torch`` offers it too.

After a change, write it anew: ``PYTHONPATH=bindings python -m kernelwright.torch.public_test``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import kernelwright.torch as offered
from kernelwright.torch import public

STUB = Path(__file__).with_name("public.pyi")


def stub() -> str:
    """The text of the file."""
    modules = sorted(set(public.MODULES.values()))
    names = {module: sorted(name for name, one in public.MODULES.items() if one == module) for module in modules}
    imports = [f"from {module} import {', '.join(names[module])}" for module in modules]
    listed = [f'    "{name}",' for name in sorted(public.MODULES)]
    head = "# Written by public_test.py from the modules of operators."
    return "\n".join([head, *imports, "", "MODULES: dict[str, str]", "__all__ = [", *listed, "]", ""])


def test_the_stub_is_what_the_modules_offer() -> None:
    assert STUB.read_text() == stub()


def test_torch_offers_every_operator() -> None:
    assert {"gemm", "conv2d", "varlen_attn", "layer_norm"} <= set(public.MODULES) <= set(offered.__all__)
    assert all(getattr(offered, name).__module__ == module for name, module in public.MODULES.items())


if __name__ == "__main__":
    STUB.write_text(stub())

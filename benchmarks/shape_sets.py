"""The shapes of the benchmarks: those that kernels were tuned on, and those that nothing was tuned on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("shapes")
TUNED, HELD_OUT = SETS = ("tuned", "held-out")
PLAIN = ("bf16", "fp16", "fp8", "int8")
# Epilogues of a bf16 product, with torch.nn.functional's names: "gelu" is its tanh approximation, "gelu_erf" is exact.
FUSED = ("bias", "bias_relu", "bias_gelu", "bias_gelu_erf")
INT8_ROWS = 17  # torch._int_mm refuses fewer


@dataclass(frozen=True)
class Case:
    """One product of A (m, k) and B (k, n); ``origin`` is the layer of a held-out shape, empty for a tuned one."""

    set: str
    m: int
    n: int
    k: int
    dtype: str
    epilogue: str = ""
    family: str = ""
    origin: str = ""

    @property
    def what(self) -> str:
        """The operation, by which results are grouped."""
        return f"{self.dtype} + {self.epilogue}" if self.epilogue else self.dtype

    def __str__(self) -> str:
        """Operation and extents."""
        return f"{self.what} {self.m}x{self.n}x{self.k}"


def cases(set_name: str, what: str, folder: Path = FOLDER) -> list[Case]:
    """The cases of "tuned" or "held-out" for a dtype of PLAIN or for "fused", each once."""
    listed = _tuned(what, folder) if set_name == TUNED else _held_out(what, folder)
    return list(dict.fromkeys(listed))


def _tuned(what: str, folder: Path) -> Iterator[Case]:
    shapes = json.loads((folder / "tuned.json").read_text())["shapes"]
    key = "bf16 and fp16" if what in ("bf16", "fp16") else what
    for m, n, k in shapes[key]:
        if what == "fused":
            yield from (Case(TUNED, m, n, k, "bf16", epilogue) for epilogue in FUSED)
        else:
            yield Case(TUNED, m, n, k, what)


def _held_out(what: str, folder: Path) -> Iterator[Case]:
    for family in json.loads((folder / "held_out.json").read_text())["families"]:
        for layer in family["layers"]:
            n, k, origin = layer["n"], layer["k"], {"family": family["family"], "origin": layer["name"]}
            for m in layer["m"]:
                if what == "fused":
                    epilogue = layer.get("epilogue", "")
                    names = [name for name in FUSED if epilogue and name.removesuffix("_erf") == epilogue]
                    yield from (Case(HELD_OUT, m, n, k, "bf16", name, **origin) for name in names)
                elif what != "int8" or m >= INT8_ROWS:
                    yield Case(HELD_OUT, m, n, k, what, **origin)

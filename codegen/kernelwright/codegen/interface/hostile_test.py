"""Specs written to break out: their texts reach no generated file and no command; only our errors come back.

``KERNELWRIGHT_FUZZ=100000`` draws as many specs as that (CI draws fewer).
"""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.arch import ArchError
from kernelwright.codegen.heuristics.model import digest_of, write_model
from kernelwright.codegen.heuristics.testing.random_model import random_content
from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.testing.hostile import HOSTILE, MARK
from kernelwright.codegen.violations import SpecError

FUZZED = int(os.environ.get("KERNELWRIGHT_FUZZ", "2000"))
SPECS: dict[str, dict[str, Any]] = {
    "gfx942": {
        "op": "gemm",
        "dtype": "fp16",
        "layout": "rcr",
        "tile": {"m": 128, "n": 128, "k": 32},
        "wave": {"m": 2, "n": 2, "k": 1},
        "warp_tile": {"m": 32, "n": 32, "k": 16},
        "pipeline": "compv3",
        "epilogue": "cshuffle",
        "scheduler": "intrawave",
    },
    "x86_64_v3": {
        "op": "gemm",
        "dtype": "fp32",
        "layout": "rrr",
        "tile": {"m": 48, "n": 64, "k": 256},
        "warp_tile": {"m": 6, "n": 16, "k": 1},
    },
    "sm_90a": {
        "op": "gemm",
        "dtype": "bf16",
        "layout": "rcr",
        "tile": {"m": 128, "n": 128, "k": 64},
        "pipeline": "tma",
    },
}
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**400, 0.5, float("nan"), float("inf")),
    *([], {}, [1, 2, 3], [2, 2, 1], {"m": 1}, {"m": 16, "n": 16, "k": 16}, "", "fp16", "bf16", "fp8", "rcr", "m", 64),
    *HOSTILE,
)


def plan(arch: object, spec: object, name: object = "lib") -> dict[str, Any]:
    return respond({"stage": "plan", "name": name, "kernels": [{"arch": arch, "spec": spec, "origin": "here"}]})


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", sorted(GemmSpec.model_fields))
def test_every_field_refuses_hostile_texts(field: str, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        plan("gfx942", {**SPECS["gfx942"], field: text})
    assert field in str(caught.value) or "gfx942" in str(caught.value)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)


@pytest.mark.parametrize("text", HOSTILE)
def test_library_and_arch_refuse_hostile_texts(text: str) -> None:
    for arch, name in ((text, "lib"), ("gfx942", text)):
        with pytest.raises((SpecError, ArchError)):
            plan(arch, SPECS["gfx942"], name)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_origin_is_for_messages_only(text: str) -> None:
    request = {"arch": "gfx942", "spec": SPECS["gfx942"], "origin": text}
    answer = respond({"stage": "plan", "name": "lib", "kernels": [request]})
    assert MARK not in json.dumps(answer)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["op", "dtypes", "arch", "schema", "sha256", "features", "hull"])
def test_models_refuse_hostile_texts(field: str, text: str, tmp_path: Path) -> None:
    """Whoever alters a model can write its digest too; alone, and as part of a library."""
    file = tmp_path / "m.json"
    write_model(random_content(1, trees=2), file)
    content = json.loads(file.read_text())
    was = content[field]
    content[field] = [text, *was[1:]] if isinstance(was, list) else {text: [0, 1]} if isinstance(was, dict) else text
    digest = text if field == "sha256" else digest_of(content)
    file.write_text(json.dumps({**content, "sha256": digest}))
    listed = [{"arch": "x86_64_v3", "spec": SPECS["x86_64_v3"]}]
    for request in (
        {"stage": "heuristic", "model": str(file), "output": "libpick.so"},
        {"stage": "plan", "name": "lib", "kernels": listed, "models": [str(file)]},
    ):
        with pytest.raises(SpecError) as caught:
            respond(request)
        assert str(file) in str(caught.value)


def fuzzed(dice: random.Random) -> tuple[object, Any]:
    """A good spec with one to four places changed."""
    arch: object = dice.choice(sorted(SPECS))
    spec: Any = copy.deepcopy(SPECS[str(arch)])
    for _ in range(dice.randint(1, 4)):
        place, key = spec, dice.choice([*GemmSpec.model_fields, *HOSTILE])
        if isinstance(spec.get(key), dict) and dice.random() < 0.5:
            place, key = spec[key], dice.choice(("m", "n", "k", *HOSTILE))
        if dice.random() < 0.1:
            place.pop(key, None)
        elif dice.random() < 0.3:
            place[key] = dice.choice((dice.randint(-4, 512), 16, 32, 64, 128, True, False))
        else:
            place[key] = copy.deepcopy(dice.choice(_ODD))
    if dice.random() < 0.03:
        spec = dice.choice(_ODD)
    if dice.random() < 0.03:
        arch = dice.choice(_ODD)
    return arch, spec


def test_fuzzed_specs_give_kernels_or_errors_of_ours() -> None:
    dice = random.Random(4)
    accepted = 0
    for number in range(FUZZED):
        arch, spec = fuzzed(dice)
        try:
            answer = plan(arch, spec)
        except (SpecError, ArchError) as error:
            assert str(error) and "Traceback" not in str(error) and "pydantic" not in str(error), (number, arch, spec)
        except Exception as error:
            raise AssertionError((number, arch, spec)) from error
        else:
            accepted += 1
            assert MARK not in json.dumps(answer), (number, arch, spec)
            assert parse_kernel(spec, archs.load(str(arch))).arch == arch
    assert FUZZED / 100 < accepted < FUZZED

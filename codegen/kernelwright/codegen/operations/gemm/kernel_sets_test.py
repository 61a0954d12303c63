from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.kernel_sets import (
    PURPOSES,
    _parts,
    expand_kernel_set,
    kernel_set_names,
)
from kernelwright.codegen.operations.gemm.sets import rule_set_names
from kernelwright.codegen.operations.gemm.spec import VARIANTS, gemm_spec
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.selecting.sets import expand_set, set_archs
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError

WRITTEN = [name for name in kernel_set_names() if not name.endswith("_all")]
# A refusal must quote one of them.
RULES = ("gemm.", "ck_tile.", "cutlass.", "cpu.")


def expanded(arch: str) -> dict[str, tuple[Kernel, ...]]:
    """Every set of an architecture by name; those without kernels are left out, after a look at what they say."""
    model = archs.load(arch)
    written = (name for name in rule_set_names() if arch in set_archs(f"gemm:{name}"))
    by_name = {name: expand_set(f"gemm:{name}", model).kernels for name in written}
    for name in WRITTEN:
        try:
            by_name[name] = expand_kernel_set(name, model).kernels
        except EmptyExpansionError as error:
            first, *reasons = str(error).splitlines()
            assert first == f"kernel set {name!r} has no kernels for {arch}:"
            assert reasons and all(" x " in line and any(rule in line for rule in RULES) for line in reasons), error
    return by_name


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("arch", archs.names())
def test_every_set_is_legal_and_names_are_injective(arch: str) -> None:
    model = archs.load(arch)
    identities: dict[str, str] = {}
    sets = expanded(arch)
    for name, kernels in sets.items():
        assert len({kernel.name for kernel in kernels}) == len(kernels) > 0, name
        for kernel in kernels:
            assert identities.setdefault(kernel.name, kernel.identity) == kernel.identity, kernel.name
    for kernel in dict.fromkeys(kernel for kernels in sets.values() for kernel in kernels):
        assert validate(kernel, model) == ()
    assert len(set(identities.values())) == len(identities)


@pytest.mark.parametrize("arch", archs.names())
def test_members_are_what_the_name_says(arch: str) -> None:
    model = archs.load(arch)
    for dtype in ("fp16", "bf16"):
        together: dict[str, Kernel] = {}
        for purpose in _parts("all"):
            try:
                kernels = expand_kernel_set(f"{dtype}_rcr_{purpose}", model).kernels
            except EmptyExpansionError:
                continue
            together.update((kernel.identity, kernel) for kernel in kernels)
            for kernel in kernels:
                assert (gemm_spec(kernel).dtype_a, gemm_spec(kernel).dtype_b, gemm_spec(kernel).layout) == (
                    dtype,
                    dtype,
                    "rcr",
                )
                assert gemm_spec(kernel).variant == (purpose if purpose in VARIANTS else "standard")
                assert gemm_spec(kernel).split_k == (purpose == "split_k")
        assert expand_kernel_set(f"{dtype}_rcr_all", model).kernels == tuple(together.values())
        assert set(expand_kernel_set(f"{dtype}_rcr_essential", model).kernels) <= set(together.values())


def test_each_arch_has_the_sets_of_every_dtype_that_it_multiplies() -> None:
    for arch in archs.names():
        model = archs.load(arch)
        offered = {key.split("_")[0] for key in gemm_section(model).warp_tiles}
        for dtype in offered - ({"int8"} if arch == "gfx90a" else set()):  # CK Tile's int8 is wrong there
            for purpose in ("compute", "memory", "latency"):
                assert expand_kernel_set(f"{dtype}_rcr_{purpose}", model).kernels


def test_what_is_wanted_takes_its_first_legal_form() -> None:
    gfx942, gfx1100 = archs.load("gfx942"), archs.load("gfx1100")
    compute = [gemm_spec(kernel) for kernel in expand_kernel_set("fp16_rcr_compute", gfx942).kernels]
    biggest, smallest = compute[0], compute[4]
    assert (biggest.tile.m, biggest.tile.n, biggest.pipeline) == (256, 256, "compv3"), "compv4 would spill"
    assert (smallest.tile.m, smallest.tile.n, smallest.pipeline) == (128, 128, "compv4")
    assert {(spec.wave.m, spec.wave.n) for spec in compute} == {(2, 2)}, "gfx942 has no sets of 16 waves"
    bytes_of_rows = {spec.tile.k * 2 for spec in compute}
    assert bytes_of_rows == {64, 128}
    eight_bits = gemm_spec(expand_kernel_set("fp8_rcr_compute", gfx942).kernels[0])
    assert (eight_bits.tile.k, eight_bits.warp_tile.k) == (64, 32)
    rdna = expand_kernel_set("fp16_rcr_compute", gfx1100)
    assert all(gemm_spec(kernel).warp_tile.k == 16 for kernel in rdna.kernels)
    assert rdna.dropped.get("ck_tile.accumulators", 0) > 0


@pytest.mark.parametrize(
    ("name", "arch", "reason"),
    [
        ("fp16_rcr_preshuffle", "sm_90a", "pipeline tma of sm_90a has no such preshuffle"),
        ("fp32_rcr_compute", "sm_90a", "fp32"),
        ("fp8_rcr_compute", "x86_64_v4", "no instruction for these dtypes"),
        ("int8_rcr_essential", "gfx90a", "stores their bits as integers: wrong results"),
    ],
)
def test_a_set_that_cannot_exist_is_refused_with_the_reason(name: str, arch: str, reason: str) -> None:
    with pytest.raises(EmptyExpansionError, match=f"kernel set '{name}' has no kernels for {arch}") as caught:
        expand_set(name, archs.load(arch))
    assert reason in str(caught.value)
    with contextlib.suppress(EmptyExpansionError):  # no architecture may have it
        assert arch not in set_archs(name)


def test_a_set_that_no_architecture_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archs, "names", lambda: ("sm_90a",))
    assert set_archs("fp8_rcr_compute") == ("sm_90a",)
    with pytest.raises(EmptyExpansionError, match="kernel set 'fp32_rcr_compute' has no kernels for sm_90a"):
        set_archs("fp32_rcr_compute")


def test_unknown_names_are_errors_that_explain_the_grammar() -> None:
    model = archs.load("gfx942")
    with pytest.raises(SpecError, match=r"unknown kernel set 'fp16_rcr_comput' \(did you mean 'fp16_rcr_compute'\?\)"):
        expand_set("fp16_rcr_comput", model)
    with pytest.raises(SpecError, match=r"<dtype>_<layout>_<purpose> with dtype fp32, fp16, .*; purpose compute, mem"):
        expand_set("mixed_precision", model)
    with pytest.raises(SpecError, match="a set is a name, not 3"):
        expand_set(3, model)


def test_names_are_every_combination() -> None:
    assert set(_parts("all")) | {"essential", "all"} == set(PURPOSES)
    assert len(kernel_set_names()) == len(set(kernel_set_names())) == 6 * 4 * len(PURPOSES)


def test_the_documentation_names_every_purpose_and_its_configuration_works() -> None:
    page = (Path(__file__).resolve().parents[5] / "docs/kernel_sets.md").read_text("utf-8")
    for purpose in PURPOSES:
        assert f"| `{purpose}` |" in page
    for name in re.findall(r"(?:fp|bf|int)[0-9]+_[a-z]{3}_[a-z_]+", page):
        assert name in kernel_set_names(), name
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    gfx942 = archs.load("gfx942")
    kernels = expand_config(json.loads(example), gfx942).kernels
    assert {gemm_spec(kernel).tile.n for kernel in kernels} == {64, 128, 256}
    ((name, arch),) = re.findall(r"error: kernel set '(\w+)' has no kernels for (\w+)", page)
    with pytest.raises(EmptyExpansionError):
        expand_set(name, archs.load(arch))

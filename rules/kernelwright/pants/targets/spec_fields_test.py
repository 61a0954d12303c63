from __future__ import annotations

from typing import Any

import pytest

from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.targets.operation_kernels import kernel_target
from kernelwright.pants.targets.spec_fields import SpecField, field_type, spec_fields
from pants.build_graph.address import Address
from pants.engine.target import InvalidFieldException, InvalidTargetException

FmhaKernelTarget = kernel_target("attention")
GemmKernelTarget = kernel_target("gemm")

ADDRESS = Address("kernels", target_name="one")


def described(kind: str, **more: object) -> dict[str, Any]:
    return {"name": "some_field", "kind": kind, "help": "Help.", **more}


def value(field: type[SpecField], raw: object) -> Any:
    return field(raw, ADDRESS).to_spec()


@pytest.mark.parametrize("op", generator_data()["operations"])
def test_every_field_of_the_generator_becomes_a_field_class(op: str) -> None:
    fields = spec_fields(op)
    entries = generator_data()["operations"][op]["fields"]
    assert [field.alias for field in fields] == [entry["name"] for entry in entries]
    assert all(str(field.help).startswith(entry["help"]) for field, entry in zip(fields, entries))
    assert all(value(field, None) is None for field in fields)


def test_a_text_is_one_of_the_allowed_values() -> None:
    field = field_type(described("text", allowed=["rcr", "rrr"]))
    assert (field.__name__, value(field, "rrr")) == ("SomeFieldField", "rrr")
    with pytest.raises(InvalidFieldException, match=r"'some_field' field in target kernels:one .*'rcr', 'rrr'.*'xyz'"):
        field("xyz", ADDRESS)


@pytest.mark.parametrize("raw", [0, 5, True])
def test_an_integer_is_within_its_bounds(raw: int) -> None:
    field = field_type(described("int", minimum=1, maximum=4))
    assert (value(field, 1), value(field, 4)) == (1, 4)
    assert field.help == "Help. Allowed: integers from 1 to 4."
    with pytest.raises(InvalidFieldException, match=r"some_field has the value .*an integer from 1 to 4"):
        field(raw, ADDRESS)


def test_an_integer_may_have_one_bound() -> None:
    assert value(field_type(described("int", minimum=1)), 1 << 40) == 1 << 40


def test_extents_and_booleans_are_named_by_axis() -> None:
    extents = field_type(described("extents", axes=["m", "n", "k"], minimum=1, maximum=64))
    assert value(extents, [16, 8, 4]) == {"m": 16, "n": 8, "k": 4}
    bools = field_type(described("bools", axes=["h", "w"]))
    assert value(bools, [True, False]) == {"h": True, "w": False}


def test_extents_that_may_be_zero_may_be_left_out_at_the_end() -> None:
    extents = field_type(described("extents", axes=["m", "n", "k"], minimum=0, maximum=64))
    assert value(extents, [16, 8]) == {"m": 16, "n": 8, "k": 0}
    for wrong in ([], [1, 2, 3, 4]):
        with pytest.raises(InvalidFieldException, match=r"allowed: up to three integers: one each for M, N, K"):
            extents(wrong, ADDRESS)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([16, 8], "kernels:one: the field some_field has 2 values; allowed: three integers: one each for M, N, K"),
        ([16, 8, 65], "kernels:one: the field some_field has the value 65; allowed: an integer from 1 to 64"),
        ([16, 8, True], "the field some_field has the value True"),
        (["16", "8", "4"], "'some_field' field in target kernels:one must be three integers"),
    ],
)
def test_wrong_extents_name_target_and_field(raw: object, said: str) -> None:
    extents = field_type(described("extents", axes=["m", "n", "k"], minimum=1, maximum=64))
    with pytest.raises(InvalidFieldException, match=said):
        extents(raw, ADDRESS)


def test_a_target_states_its_operation_and_the_fields_that_were_given() -> None:
    target = GemmKernelTarget({"arch": "gfx942", "persistent": False, "tile": (128, 64, 32)}, ADDRESS)
    assert target.spec() == {"op": "gemm", "persistent": False, "tile": {"m": 128, "n": 64, "k": 32}}


def test_a_kernel_of_attention_states_what_it_needs() -> None:
    fields = {"arch": "gfx942", "family": "fwd", "dtype": "bf16", "hdim": 128, "wave": [4, 1, 1, 4, 1, 1]}
    spec = FmhaKernelTarget(fields, ADDRESS).spec()
    assert (spec["op"], spec["family"], spec["hdim"]) == ("attention", "fwd", 128)
    assert list(spec["wave"].values()) == [4, 1, 1, 4, 1, 1, 0, 0, 0]
    with pytest.raises(InvalidTargetException, match=r"'mask' field in target kernels:one .*'bottom_right'"):
        FmhaKernelTarget({**fields, "mask": "causal"}, ADDRESS)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidTargetException, match="tyle"):
        GemmKernelTarget({"arch": "gfx942", "tyle": [1, 2, 3]}, ADDRESS)

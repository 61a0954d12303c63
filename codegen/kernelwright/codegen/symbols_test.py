from __future__ import annotations

import pytest

from kernelwright.codegen import symbols
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import COMPILED_ACTIVATIONS


def test_every_type_and_activation_has_a_symbol_of_its_own() -> None:
    for table in (symbols.CK_TILE_DTYPES, symbols.CUTLASS_DTYPES, symbols.CPU_DTYPES):
        assert set(table) == set(DType) == set(symbols.part(table, *DType)) and len(set(table.values())) == len(DType)
    for activations in (symbols.CPU_ACTIVATIONS, symbols.CUDA_ACTIVATIONS):
        assert set(activations) == set(COMPILED_ACTIVATIONS) and len(set(activations.values())) == len(activations)


def test_an_operation_has_its_own_types_alone() -> None:
    assert symbols.part(symbols.CUTLASS_DTYPES, DType.FP16) == {DType.FP16: "cutlass::half_t"}
    with pytest.raises(KeyError):
        symbols.part(symbols.CUTLASS_DTYPES, DType.FP16)[DType.FP32]

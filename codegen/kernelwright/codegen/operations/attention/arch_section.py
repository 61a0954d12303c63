"""The section ``operations.attention`` of an architecture file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from kernelwright.arch import Arch, ChoicesField, Triples
from kernelwright.codegen.operations.attention.kinds import Constraint, Family, Mask, OperandTypes, Pipeline
from kernelwright.codegen.operations.attention.products import product_names
from kernelwright.codegen.operations.attention.spec import BwdTile, Stages, Tile


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Row(_Frozen):
    """A line of the kernel table: the tiles that some data types and head dimensions (Q, V) are computed with.

    ``products`` names combinations of features (see :mod:`.products`). Trailing extents of tiles, waves and warp tiles
    that are left out are 0.
    """

    family: Family
    dtypes: tuple[OperandTypes, ...] = Field(min_length=1)
    hdim: tuple[int, int]
    tile: tuple[int, ...] = ()
    bwd_tile: tuple[int, ...] = ()
    wave: tuple[int, ...] = ()
    warp_tile: tuple[int, ...] = ()
    block_per_cu: int = -1
    max_seq_len_q: int = 0
    constraint_tag: Constraint = Constraint.NONE
    products: tuple[str, ...] = Field(min_length=1)

    @functools.cached_property
    def extents(self) -> Mapping[str, BaseModel]:
        """``tile``, ``bwd_tile``, ``wave`` and ``warp_tile`` as fields of a spec."""
        return {
            "tile": extents(Tile, self.tile),
            "bwd_tile": extents(BwdTile, self.bwd_tile),
            "wave": extents(Stages, self.wave),
            "warp_tile": extents(Stages, self.warp_tile),
        }


class TileLimits(_Frozen):
    """Legal extents of GEMM 0 of a tile: queries, keys, and the step along the head dimension."""

    m0: ChoicesField
    n0: ChoicesField
    k0: ChoicesField


class FeatureNeed(_Frozen):
    """Kernels of this dtype and warp-tile K run only on a device that has ``feature`` beyond the architecture."""

    feature: str = Field(min_length=1)
    dtype: OperandTypes
    warp_tile_k: int = Field(gt=0)


class AttentionSection(_Frozen):
    """Legal values of attention specs on one architecture.

    ``pipelines`` maps each pipeline to the families that have it. ``hdims`` lists head dimensions of Q and V by data
    type, ``warp_tiles`` the matrix instructions. ``lds_banks`` is the number of LDS banks of 4 bytes.
    ``chained_products``: accumulators of one matrix instruction can be an operand of the next one. With
    ``written_tiles_only`` only the tiles of ``kernels`` are legal, since no others were proven. ``stock_headers`` names
    kernels of CK Tile whose schedule changes with rewritten headers (see :mod:`kernelwright.codegen.lean`):
    ``gradients`` or those with ``dropout``.
    """

    dtypes: tuple[OperandTypes, ...] = Field(min_length=1)
    masks: tuple[Mask, ...] = Field(min_length=1)
    lds_banks: int = Field(default=32, gt=0)
    chained_products: bool = True
    written_tiles_only: bool = False
    stock_headers: tuple[Literal["gradients", "dropout"], ...] = ()
    pipelines: dict[Pipeline, tuple[Family, ...]] = Field(min_length=1)
    hdims: dict[OperandTypes, tuple[tuple[int, int], ...]]
    tile: TileLimits
    warp_tiles: dict[OperandTypes, Triples]
    feature_needs: tuple[FeatureNeed, ...] = ()
    kernels: tuple[Row, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _tables_agree(self, info: ValidationInfo) -> Self:
        for table, keys in (("hdims", self.hdims), ("warp_tiles", self.warp_tiles)):
            if set(keys) != set(self.dtypes):
                raise ValueError(f"{table} must have exactly the dtypes: {', '.join(self.dtypes)}")
        rated: Arch = info.context  # type: ignore[assignment]
        unrated = {str(one.inputs) for one in self.dtypes} - set(rated.flops_per_clock_per_cu)
        if unrated:
            raise ValueError(f"flops_per_clock_per_cu must rate these dtypes: {', '.join(sorted(unrated))}")
        known = set(rated.cpu.features) if rated.cpu else set()
        for need in self.feature_needs:
            if need.feature not in known:
                raise ValueError(f"feature_needs has {need.feature!r}, which cpu.features lacks")
        for row in self.kernels:
            if not set(row.dtypes) <= set(self.dtypes):
                raise ValueError(f"kernels has a line for {', '.join(row.dtypes)}; dtypes lacks some of them")
            for product in row.products:
                if product not in product_names():
                    raise ValueError(f"kernels names the product {product!r}; known: {', '.join(product_names())}")
        return self

    @functools.cached_property
    def hdim_sets(self) -> Mapping[OperandTypes, frozenset[tuple[int, int]]]:
        """``hdims`` for membership tests."""
        return {dtype: frozenset(pairs) for dtype, pairs in self.hdims.items()}

    @functools.cached_property
    def warp_tile_sets(self) -> Mapping[OperandTypes, frozenset[tuple[int, int, int]]]:
        """``warp_tiles`` for membership tests."""
        return {dtype: frozenset(tiles) for dtype, tiles in self.warp_tiles.items()}

    @functools.cached_property
    def families(self) -> frozenset[Family]:
        """Every family that has a pipeline."""
        return frozenset(family for families in self.pipelines.values() for family in families)

    def pipelines_of(self, family: Family) -> tuple[Pipeline, ...]:
        """Return the pipelines of a family."""
        return tuple(pipeline for pipeline, families in self.pipelines.items() if family in families)

    def rows(self, family: Family, dtype: OperandTypes, hdim: tuple[int, int]) -> tuple[Row, ...]:
        """Return the lines of the table for a family, data type and head dimensions, in table order."""
        return self._rows.get((family, dtype, hdim), ())

    @functools.cached_property
    def _rows(self) -> Mapping[tuple[Family, OperandTypes, tuple[int, int]], tuple[Row, ...]]:
        by_key: dict[tuple[Family, OperandTypes, tuple[int, int]], tuple[Row, ...]] = {}
        for row in self.kernels:
            for dtype in row.dtypes:
                key = (row.family, dtype, row.hdim)
                by_key[key] = (*by_key.get(key, ()), row)
        return by_key


def attention_features(dtype: OperandTypes, warp_tile_k: int, arch: Arch) -> tuple[str, ...]:
    """Return the features that a device needs beyond ``arch`` for this dtype and warp-tile K, sorted."""
    needs = attention_section(arch).feature_needs
    return tuple(sorted(need.feature for need in needs if (need.dtype, need.warp_tile_k) == (dtype, warp_tile_k)))


def hdim_distance(asked: tuple[int, int], pair: tuple[int, int]) -> tuple[bool, int]:
    """How far a pair of head dimensions is from those asked for; pairs that hold them, with padding, come first."""
    smaller = pair[0] < asked[0] or pair[1] < asked[1]
    return smaller, abs(pair[0] - asked[0]) + abs(pair[1] - asked[1])


def extents(kind: type[BaseModel], values: tuple[int, ...]) -> BaseModel:
    """Return a tile, waves or warp tiles with these extents; trailing extents that are left out are 0.

    ValueError for more values than there are extents.
    """
    if len(values) > len(kind.model_fields):
        raise ValueError(f"{len(values)} extents; allowed: at most {len(kind.model_fields)}")
    return kind(**dict(zip(kind.model_fields, values, strict=False)))


def attention_section(arch: Arch) -> AttentionSection:
    """Return the attention section of an architecture; ArchError if there is none, or if it is malformed."""
    return arch.section("attention", AttentionSection)

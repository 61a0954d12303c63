"""What our CPU kernels of attention cannot do, or do only by spilling registers or missing caches."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention import cpu as symbols
from kernelwright.codegen.operations.attention.constraints.report import extent_text, wrong
from kernelwright.codegen.operations.attention.constraints.tiles import stages
from kernelwright.codegen.operations.attention.kinds import Family, PageLayout, QScale
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.violations import Violation, rules

_UNIT_BYTES = 4
_MULTIPLYING = symbols.PART | {Family.BWD_DQ_DK_DV}


def check_register_block(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """All products of a kernel have one register block, so that a result lies as the next product reads it."""
    if spec.family not in _MULTIPLYING:
        return
    used = [triple for triple in stages(spec.warp_tile) if any(triple)]
    if len(set(used)) > 1:
        why = "probabilities lie as the product of scores left them"
        texts = ", ".join(map(extent_text, used))
        allowed = "the same warp tile in every stage"
        yield from wrong("attention_cpu.register_block", "warp_tile", texts, why, allowed, extent_text(used[0]))


def check_depth(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """warp_tile.k0 is the number of values that one instruction sums, and keys of a register block are whole units."""
    if spec.family not in _MULTIPLYING:
        return
    depths = [k for dtype, k in symbols.OPERATIONS if dtype is spec.dtype]
    depth = spec.warp_tile.k0
    if depths and depth not in depths:
        why = f"no instruction sums that many {spec.dtype} products"
        yield from wrong("attention_cpu.depth", "warp_tile.k0", depth, why, ", ".join(map(str, depths)), depths[0])
    elif depth and spec.warp_tile.n0 % depth:
        why = "neighbouring keys are summed together"
        nearest = max(depth, spec.warp_tile.n0 // depth * depth)
        yield from wrong(
            "attention_cpu.depth", "warp_tile.n0", spec.warp_tile.n0, why, f"multiples of {depth}", nearest
        )


def check_vectors(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """warp_tile.m0 is whole vectors: queries are lanes."""
    if arch.cpu is None or spec.family not in _MULTIPLYING or spec.warp_tile.m0 % arch.cpu.vector_lanes == 0:
        return
    lanes = arch.cpu.vector_lanes
    nearest = max(lanes, round(spec.warp_tile.m0 / lanes) * lanes)
    why = f"a vector of {arch.target} has {lanes} lanes"
    yield from wrong("attention_cpu.vectors", "warp_tile.m0", spec.warp_tile.m0, why, f"multiples of {lanes}", nearest)


def check_registers(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Sums, one line of queries and one key must fit into the vector registers, or the inner loop spills."""
    if arch.cpu is None or spec.family not in _MULTIPLYING:
        return
    registers, vectors = arch.cpu.vector_registers, -(-spec.warp_tile.m0 // arch.cpu.vector_lanes)
    needed = spec.warp_tile.n0 * vectors + vectors + 1
    if vectors and needed > registers:
        most = (registers - 1 - vectors) // vectors
        why = f"the register block needs {needed} vector registers, {arch.target} has {registers}"
        block = f"{spec.warp_tile.m0}x{spec.warp_tile.n0}"
        allowed = f"n0 * vectors + vectors + 1 <= {registers}"
        nearest = f"{spec.warp_tile.m0}x{most}" if most > 0 else ""
        yield from wrong("attention_cpu.registers", "warp_tile", block, why, allowed, nearest)


def check_caches(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A block of K and V takes at most three quarters of a core's second-level cache."""
    if spec.family not in _MULTIPLYING:
        return
    backward = spec.family is Family.BWD_DQ_DK_DV
    keys = spec.bwd_tile.n0 if backward else spec.tile.n0
    used, bound = keys * (spec.hdim_q + spec.hdim_v) * _UNIT_BYTES, arch.lds_bytes * 3 // 4
    if used > bound:
        unit = max(1, spec.warp_tile.n0)
        most = bound // ((spec.hdim_q + spec.hdim_v) * _UNIT_BYTES) // unit * unit
        why = f"K and V of so many keys take {used} bytes of the second-level cache, {bound} are for them"
        field = "bwd_tile.n0" if backward else "tile.n0"
        yield from wrong("attention_cpu.caches", field, keys, why, f"at most {most}", most)


def check_features(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Kernels take every length and factor, and no order of pages but the linear one; random bytes are not stored."""
    for axis in ("s", "sk"):
        if not getattr(spec.pad, axis):
            why = "CPU kernels serve every length in the same way"
            yield from wrong("attention_cpu.features", f"pad.{axis}", False, why, True, True)
    if spec.kv_memory_layout is not PageLayout.LINEAR:
        why = "rows of a page are read as vectors along the head dimension"
        yield from wrong("attention_cpu.features", "kv_memory_layout", spec.kv_memory_layout, why, "linear", "linear")
    if spec.store_randval:
        why = "no CPU kernel stores the random bytes of dropout"
        yield from wrong("attention_cpu.features", "store_randval", True, why, False, False)
    why = "kernels with and without it would be the same"
    for name in ("skip_min_seqlen_q", "trload", "static_quant"):
        if getattr(spec, name):
            yield from wrong("attention_cpu.features", name, True, why, False, False)
    if spec.qscale is not QScale.NONE:
        why = "kernels of 8-bit operands take factors of every kind"
        yield from wrong("attention_cpu.features", "qscale", spec.qscale, why, QScale.NONE, QScale.NONE)


RULES = rules(
    "attention_cpu.",
    (check_register_block, check_depth, check_vectors, check_registers, check_caches, check_features),
)
"""Every rule of this module, in the order in which violations are listed."""

"""What our CPU kernels cannot do, or do only by spilling registers or missing caches."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.gemm import cpu as symbols
from kernelwright.codegen.operations.gemm.constraints import variants
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.violations import Violation, rules

# A packed block of A should leave the second-level cache room for the panels of B that stream through it; a packed
# block of B may take a good part of a shared third-level cache.
_B_BLOCK_BYTES = 16 << 20
_UNIT_BYTES = 4
_SHUFFLED_ALONE = {
    "batched": "one shuffled B serves one product: multiply by it once more, or leave B as it is",
    "grouped": "the products of a group have a B each: leave B as it is",
    "stream_k": "the steps of stream-K do not end where shuffled blocks end: leave B as it is",
}
_INTEGERS = dict.fromkeys(("num_d", "activation"), "D tensors and activations are of floats, and the sums are int32")
_PERSISTENT = {
    "stream_k": "its workers walk the tiles already",
    "split_k": "its slices are handed out one by one",
}


def check_symbols(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Only some dtypes and traits have C++ symbols; A and B are of one type."""
    sums = symbols.SUMS.get(spec.dtype_a, DType.FP32)
    tables = (
        ("dtype_c", spec.dtype_c, symbols.OUTPUTS[sums]),
        ("dtype_acc", spec.dtype_acc, (sums,)),
        ("pipeline", spec.pipeline, symbols.PIPELINES),
        ("epilogue", spec.epilogue, symbols.EPILOGUES),
        ("scheduler", spec.scheduler, symbols.SCHEDULERS),
    )
    for field, value, allowed in tables:
        if value not in allowed:
            yield Violation(
                "cpu.symbols", field, value, "no CPU kernel is written for it", ", ".join(allowed), allowed[0]
            )
    if spec.dtype_b != spec.dtype_a:
        why = "one instruction multiplies A and B, so they are of one type"
        yield Violation("cpu.symbols", "dtype_b", spec.dtype_b, why, spec.dtype_a, spec.dtype_a)


def check_depth(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """warp_tile.k is the number of values of K that one instruction sums: 1 for fma, 2 or 4 for dot products, 32 or 64
    for tiles of AMX."""
    depths = [k for dtype, k in symbols.OPERATIONS if dtype == spec.dtype_a]
    if spec.warp_tile.k not in depths:
        why = f"no instruction sums that many {spec.dtype_a} products"
        allowed = ", ".join(map(str, depths))
        nearest = str(min(depths, key=lambda k: abs(k - spec.warp_tile.k))) if depths else ""
        yield Violation("cpu.depth", "warp_tile.k", str(spec.warp_tile.k), why, allowed, nearest)


def check_target(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """The templates need to know the vector registers of the compile target."""
    if arch.cpu is None:
        why = "its architecture file does not say how many vector registers it has (section 'cpu')"
        yield Violation("cpu.target", "arch", arch.target, why, "", "")


def check_vectors(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """warp_tile.n is whole vectors: a line of the register block is loaded and stored as such."""
    if arch.cpu is None:
        return
    lanes = arch.cpu.vector_lanes
    if spec.warp_tile.n % lanes:
        why = f"a vector of {arch.target} has {lanes} lanes"
        nearest = str(max(lanes, round(spec.warp_tile.n / lanes) * lanes))
        yield Violation("cpu.vectors", "warp_tile.n", str(spec.warp_tile.n), why, f"multiples of {lanes}", nearest)


def check_registers(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Accumulators, one line of B and one value of A must fit into the vector registers, or the inner loop spills.

    AMX has eight tiles of its own: the architecture file lists what fits them.
    """
    if arch.cpu is None or (spec.dtype_a, spec.warp_tile.k) in symbols.TILES:
        return
    registers, lanes = arch.cpu.vector_registers, arch.cpu.vector_lanes
    vectors = -(-spec.warp_tile.n // lanes)
    shifted = vectors + 1 if (spec.dtype_a, spec.warp_tile.k) in symbols.SHIFTED else 0
    needed = spec.warp_tile.m * vectors + vectors + 1 + shifted
    if needed > registers:
        most = (registers - 1 - vectors - shifted) // vectors
        why = f"the register block needs {needed} vector registers, {arch.target} has {registers}"
        value = f"{spec.warp_tile.m}x{spec.warp_tile.n}x{spec.warp_tile.k}"
        nearest = f"{most}x{spec.warp_tile.n}x{spec.warp_tile.k}" if most > 0 else ""
        allowed = f"m * n / {lanes} + n / {lanes} + {1 + shifted} <= {registers}"
        yield Violation("cpu.registers", "warp_tile", value, why, allowed, nearest)


def check_caches(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """A packed block of A stays in the second-level cache and a packed block of B in the third, or both are useless."""
    steps = -(-spec.tile.k // symbols.TILES.get((spec.dtype_a, spec.warp_tile.k), spec.warp_tile.k))
    for field, extent, bound, unit, cache in (
        ("tile.m", spec.tile.m, arch.lds_bytes, spec.warp_tile.m, "the second-level cache"),
        ("tile.n", spec.tile.n, _B_BLOCK_BYTES, spec.warp_tile.n, "a third-level cache"),
    ):
        used = extent * steps * _UNIT_BYTES
        if used > bound:
            most = max(unit, bound // (steps * _UNIT_BYTES) // unit * unit)
            why = f"the packed block takes {used} bytes, {cache} offers {bound}"
            yield Violation(
                "cpu.caches", field, str(extent), why, f"at most {most} at tile.k = {spec.tile.k}", str(most)
            )


def check_padding(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Packing pads every extent, so a kernel that says it cannot would be a second name for the same code."""
    for axis in ("m", "n", "k"):
        if not getattr(spec.pad, axis):
            yield Violation("cpu.padding", f"pad.{axis}", "False", "packing pads every extent", "True", "True")


def check_variants(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Shuffled B, integer sums and persistent kernels go without some of the other variants."""
    if spec.preshuffle:
        yield from variants.refused("cpu.variants", spec, _SHUFFLED_ALONE)
    if spec.dtype_acc is DType.INT32:
        yield from variants.refused("cpu.variants", spec, _INTEGERS)
    if spec.persistent:
        yield from variants.refused("cpu.variants", spec, _PERSISTENT)


RULES = rules(
    "cpu.",
    (
        check_symbols,
        check_depth,
        check_target,
        check_vectors,
        check_registers,
        check_caches,
        check_padding,
        check_variants,
    ),
)
"""Rules that the CPU backend adds to the common ones."""

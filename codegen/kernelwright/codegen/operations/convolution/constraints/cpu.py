"""What our CPU kernels of convolution cannot do, or do only by spilling registers or missing caches."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.operations.convolution import cpu as symbols
from kernelwright.codegen.operations.convolution.constraints.common import DEPTHWISE_FIELDS, GEMM_FIELDS
from kernelwright.codegen.operations.convolution.constraints.report import flags, refused, text, triple
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec
from kernelwright.codegen.violations import Violation, rules
from kernelwright.problems.convolution.description import ConvLayout

_UNIT_BYTES = 4


def check_depth(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """warp_tile.k is the number of values of K that one instruction sums; outputs are summed one by one."""
    depths = [k for dtype, k in symbols.OPERATIONS if dtype == spec.dtype]
    if spec.direction is Direction.BACKWARD_WEIGHT or spec.depthwise:
        depths = depths[:1]
    if depths and spec.warp_tile.k not in depths:
        why = f"no instruction of {spec.direction} sums that many {spec.dtype} products"
        nearest = str(min(depths, key=lambda k: abs(k - spec.warp_tile.k)))
        yield Violation(
            "conv_cpu.depth", "warp_tile.k", str(spec.warp_tile.k), why, ", ".join(map(str, depths)), nearest
        )


def check_vectors(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """warp_tile.n is whole vectors: a line of the register block is loaded and stored as such."""
    if arch.cpu is None or spec.depthwise or spec.warp_tile.n % arch.cpu.vector_lanes == 0:
        return
    lanes = arch.cpu.vector_lanes
    nearest = str(max(lanes, round(spec.warp_tile.n / lanes) * lanes))
    why, allowed = f"a vector of {arch.target} has {lanes} lanes", f"multiples of {lanes}"
    yield Violation("conv_cpu.vectors", "warp_tile.n", str(spec.warp_tile.n), why, allowed, nearest)


def check_registers(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Accumulators, one line of B and one value of A must fit into the vector registers, or the inner loop spills."""
    if arch.cpu is None or spec.depthwise:
        return
    registers, lanes = arch.cpu.vector_registers, arch.cpu.vector_lanes
    vectors = -(-spec.warp_tile.n // lanes)
    needed = spec.warp_tile.m * vectors + vectors + 1
    if needed > registers:
        most = (registers - 1 - vectors) // vectors
        why = f"the register block needs {needed} vector registers, {arch.target} has {registers}"
        nearest = f"{most}x{spec.warp_tile.n}x{spec.warp_tile.k}" if most > 0 else ""
        allowed = f"m * n / {lanes} + n / {lanes} + 1 <= {registers}"
        yield Violation("conv_cpu.registers", "warp_tile", text(triple(spec.warp_tile)), why, allowed, nearest)


def check_caches(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """The panel of weights that one pass reads must leave the second-level cache room for the slab that it meets."""
    if spec.depthwise or spec.direction is Direction.BACKWARD_WEIGHT:
        return
    used, bound = spec.tile.k // spec.warp_tile.k * spec.warp_tile.n * _UNIT_BYTES, arch.lds_bytes // 4
    if used > bound:
        most = bound // (spec.warp_tile.n * _UNIT_BYTES) * spec.warp_tile.k
        why = f"a panel of weights takes {used} bytes of the second-level cache, {bound} are for it"
        allowed = f"at most {most} at warp_tile.n = {spec.warp_tile.n}"
        yield Violation("conv_cpu.caches", "tile.k", str(spec.tile.k), why, allowed, str(most))


def check_features(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Kernels take every filter, stride and channel count, so one that is built for some would be a second name."""
    why = "CPU kernels serve every problem of their direction in the same way"
    yield from flags("conv_cpu.features", spec, (*GEMM_FIELDS, *DEPTHWISE_FIELDS), why)
    for axis in "mnk":
        if not getattr(spec.pad, axis):
            yield refused("conv_cpu.features", f"pad.{axis}", False, True, why)


def check_planes(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Where channels are not innermost, forward is all there is, and a bias would be one number for a whole vector."""
    if spec.layout is not ConvLayout.NGCHW:
        return
    if spec.direction is not Direction.FORWARD:
        why = f"no CPU kernel computes gradients in {spec.layout}"
        yield Violation("conv_cpu.planes", "direction", spec.direction, why, "forward", "forward")
    why = f"{spec.layout} has vectors of one channel, and a bias is one number for it"
    if spec.bias:
        yield refused("conv_cpu.planes", "bias", True, False, why)
    if spec.activation is Activation.ANY:
        yield Violation("conv_cpu.planes", "activation", "any", why, "the others", Activation.NONE)


RULES = rules(
    "conv_cpu.",
    (check_depth, check_vectors, check_registers, check_caches, check_features, check_planes),
)
"""Rules that the CPU backend adds to the common ones."""

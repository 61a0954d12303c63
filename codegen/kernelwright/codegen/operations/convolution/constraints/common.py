"""Rules that hold for every convolution: what the architecture file lists, and which fields go together."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.operations.convolution.arch_section import conv_section
from kernelwright.codegen.operations.convolution.constraints.fields import FIELD_CHECKS
from kernelwright.codegen.operations.convolution.constraints.report import flags, member, one_of, refused, triple
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec
from kernelwright.codegen.violations import Violation, rules

_ONE = (1, 1, 1)


def check_dtype(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """The matrix or vector units multiply some dtypes only, summing in fp32."""
    dtypes = tuple(conv_section(arch).warp_tiles)
    if spec.dtype not in dtypes:
        yield one_of("convolution.dtype", "dtype", spec.dtype, dtypes, f"{arch.name} has no convolution of it")


def check_layout(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Implicit GEMMs read channels that lie side by side; depthwise kernels have layouts of their own."""
    section = conv_section(arch)
    allowed = section.depthwise_layouts if spec.depthwise else section.layouts
    if spec.layout not in allowed:
        kind = "depthwise kernel" if spec.depthwise else "implicit GEMM"
        yield one_of("convolution.layout", "layout", spec.layout, allowed, f"{arch.name} has no {kind} for it")


def check_tile_limits(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Each extent of the tile must lie within the architecture's limits."""
    if spec.depthwise:
        return
    limits = conv_section(arch).tile
    for axis, value, choices in (
        ("m", spec.tile.m, limits.m),
        ("n", spec.tile.n, limits.n),
        ("k", spec.tile.k, limits.k),
    ):
        if value not in choices.values:
            message, nearest = f"not a tile extent of {arch.name}", str(choices.nearest(value))
            yield Violation("convolution.tile_limits", f"tile.{axis}", str(value), message, str(choices), nearest)


def check_wave_set(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Waves are laid out over a tile in a fixed set of ways."""
    section = conv_section(arch)
    if not spec.depthwise and triple(spec.wave) not in section.wave_set:
        message = f"{arch.name} lays out waves otherwise"
        yield member("convolution.wave_set", "wave", spec.wave, section.waves, message)


def check_warp_tile_set(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """A warp tile is what one matrix instruction, or a short run of them, multiplies: only some exist per dtype."""
    section = conv_section(arch)
    sets = section.warp_tile_sets
    if not spec.depthwise and spec.dtype in sets and triple(spec.warp_tile) not in sets[spec.dtype]:
        message = f"{arch.name} has no such warp tile for {spec.dtype}"
        listed = section.warp_tiles[spec.dtype]
        yield member("convolution.warp_tile_set", "warp_tile", spec.warp_tile, listed, message)


def check_divisibility(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Waves times warp tile must divide the tile along each extent: a wave computes whole warp tiles."""
    tile, wave, warp = spec.tile, spec.wave, spec.warp_tile
    for axis, value, unit in (
        ("m", tile.m, wave.m * warp.m),
        ("n", tile.n, wave.n * warp.n),
        ("k", tile.k, wave.k * warp.k),
    ):
        if value % unit:
            message = f"wave.{axis} * warp_tile.{axis} = {unit} must divide the tile: waves compute whole warp tiles"
            nearest = unit * max(1, round(value / unit))
            field, allowed = f"tile.{axis}", f"multiples of {unit}"
            yield Violation("convolution.divisibility", field, str(value), message, allowed, str(nearest))


def check_pipeline(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """The pipeline must exist on the architecture, for the direction and for what the kernel is."""
    known = conv_section(arch).pipelines
    fitting = tuple(
        name for name, one in known.items() if one.depthwise == spec.depthwise and spec.direction in one.directions
    )
    if spec.pipeline not in fitting:
        kind = "depthwise " * spec.depthwise + spec.direction
        message = f"{arch.name} has no such pipeline for {kind}"
        yield one_of("convolution.pipeline", "pipeline", spec.pipeline, fitting, message)


def check_traits(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Scheduler, epilogue and number of LDS buffers go with a pipeline only as its entry lists."""
    limits = conv_section(arch).pipelines.get(spec.pipeline)
    if limits is None:
        return
    message = f"pipeline {spec.pipeline} of {arch.name} has no such"
    if spec.scheduler not in limits.schedulers:
        yield one_of("convolution.traits", "scheduler", spec.scheduler, limits.schedulers, f"{message} scheduler")
    if spec.epilogue not in limits.epilogues:
        yield one_of("convolution.traits", "epilogue", spec.epilogue, limits.epilogues, f"{message} epilogue")
    if limits.double_buffer and not spec.double_smem_buffer:
        yield refused("convolution.traits", "double_smem_buffer", False, True, "the pipeline keeps two stages in LDS")


def check_vector(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """An access to memory moves a power of two of elements, up to the widest that the architecture lists."""
    widest = conv_section(arch).vector_bytes
    most = 1 if widest is None else widest // ELEMENT_BYTES[spec.dtype]
    for operand in "abc":
        value = getattr(spec.vector, operand)
        if value > most or value & (value - 1):
            allowed = ", ".join(str(1 << power) for power in range(most.bit_length()))
            message = f"accesses of {arch.name} move a power of two of elements, at most {most} of {spec.dtype}"
            nearest = str(min(most, 1 << (value.bit_length() - 1)))
            yield Violation("convolution.vector", f"vector.{operand}", str(value), message, allowed, nearest)


def check_lds_budget(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """One stage of A and B must fit into LDS, or into half of it where two stages are kept."""
    limits = conv_section(arch).pipelines.get(spec.pipeline)
    if limits is None or limits.lds_bytes is None:
        return
    budget = min(limits.lds_bytes, arch.lds_bytes // 2) if spec.double_smem_buffer else limits.lds_bytes
    per_k = (spec.tile.m + spec.tile.n) * ELEMENT_BYTES[spec.dtype]
    if per_k * spec.tile.k > budget:
        fitting = [k for k in conv_section(arch).tile.k if k % spec.warp_tile.k == 0 and k * per_k <= budget]
        yield Violation(
            "convolution.lds_budget",
            "tile",
            "x".join(map(str, triple(spec.tile))),
            f"one stage of A and B takes {per_k * spec.tile.k} bytes, pipeline {spec.pipeline} has {budget} for it",
            f"(tile.m + tile.n) * tile.k * {ELEMENT_BYTES[spec.dtype]} <= {budget}",
            f"tile.k = {max(fitting)}" if fitting else "a smaller tile.m or tile.n",
        )


def check_depthwise(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """A depthwise kernel has no GEMM, and only it fixes filters and strides."""
    if not spec.depthwise:
        why = "only depthwise kernels fix it: write depthwise = True, or leave it out"
        yield from flags("convolution.depthwise", spec, DEPTHWISE_FIELDS, why)
        return
    why = "a depthwise kernel has no GEMM"
    yield from flags("convolution.depthwise", spec, GEMM_FIELDS, why)
    for field in ("tile", "wave", "warp_tile"):
        if triple(getattr(spec, field)) != _ONE:
            yield refused(
                "convolution.depthwise", field, "x".join(map(str, triple(getattr(spec, field)))), "1x1x1", why
            )


_FIELDS = GroupedConvSpec.model_fields
DEPTHWISE_FIELDS = tuple(
    (name, _FIELDS[name].default) for name in ("image_tile", "filter", "stride", "padding", "subtile", "images")
)
"""Fields that only depthwise kernels have, and their defaults."""

GEMM_FIELDS = tuple(
    (name, _FIELDS[name].default)
    for name in (
        *("specialization", "num_groups_to_merge", "num_wave_groups", "double_smem_buffer", "split_image"),
        *("two_stage", "explicit_gemm", "stream_k", "stream_k_persistent"),
    )
)
"""Fields that only implicit GEMMs have, and their defaults."""

RULES = rules(
    "convolution.",
    (
        check_dtype,
        check_layout,
        check_depthwise,
        check_tile_limits,
        check_wave_set,
        check_warp_tile_set,
        check_divisibility,
        check_pipeline,
        check_traits,
        check_vector,
        check_lds_budget,
        *FIELD_CHECKS,
    ),
)
"""Every rule that asks nothing of a backend."""

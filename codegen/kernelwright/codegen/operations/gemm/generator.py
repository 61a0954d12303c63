"""GEMM kernels requested as in the CK Tile dispatcher: by data types, layouts, variants, a set or a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expansion, GeneratorOption
from kernelwright.codegen.operations.gemm.kernel_sets import DTYPES, expand_kernel_set, kernel_set_parts, siblings
from kernelwright.codegen.operations.gemm.spec import VARIANTS, gemm_spec
from kernelwright.codegen.operations.gemm.variants import checked_variants, with_problem
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

DATATYPE, LAYOUT = "fp16", "rcr"
"""Defaults for what neither the options nor a configuration state."""

# Purposes of preselected sets that make up a variant.
_PURPOSES: Mapping[str, Sequence[str]] = {"standard": ("compute", "memory", "latency", "split_k")}


class GemmGenerator:
    """The options of ``kernelwright generate gemm``, and the kernels that they describe."""

    options = (
        GeneratorOption("datatype", tuple(map(str, DTYPES)), "TYPE…", f"Default: {DATATYPE}."),
        GeneratorOption(
            "layout", tuple(map(str, Layout)), "LAYOUT…", f"Row- or column-major of A, B and C; default: {LAYOUT}."
        ),
        GeneratorOption(
            "variants",
            VARIANTS,
            "VARIANT…",
            f"Of {', '.join(VARIANTS)}. Default: standard, or all that --preselected or --config holds.",
        ),
    )

    def expansions(
        self, wanted: Mapping[str, Sequence[str]], preselected: str | None, config: object, arch: Arch
    ) -> Iterator[Expansion]:
        """Yield the kernels of each combination of the options; each has at least one.

        Without ``preselected`` and ``config`` these are the preselected sets of data type, layout and variant. Raises
        SpecError or a subclass for an unknown set or variant, options that contradict the set or the configuration, and
        a combination without kernels, with the reasons.
        """
        variants = checked_variants(wanted["variants"]) if wanted["variants"] else []
        if preselected is not None:
            yield _of_set(preselected, wanted, variants, arch)
        elif config is not None:
            for fields in _combinations(wanted, config):
                yield expand_config(_completed(config, fields, variants), arch)
        else:
            for fields in _combinations(wanted, {}):
                for variant in variants or ["standard"]:
                    yield _of_variant(fields["dtype"], fields["layout"], variant, arch)


def _of_set(name: str, wanted: Mapping[str, Sequence[str]], variants: Sequence[str], arch: Arch) -> Expansion:
    expansion = expand_set(name, arch, op="gemm")
    parts = kernel_set_parts(name.removeprefix("gemm:"))
    for option, given, own in zip(
        ("--datatype", "--layout"), (wanted["datatype"], wanted["layout"]), parts or (None, None), strict=True
    ):
        if given and tuple(given) != (own,):
            says = own or "what it holds"
            raise SpecError(f"--preselected {name} says {says}, but {option} {' '.join(given)} was given; leave it out")
    if not variants:
        return expansion
    kept = tuple(kernel for kernel in expansion.kernels if gemm_spec(kernel).variant in variants)
    for variant in variants:
        if not any(gemm_spec(kernel).variant == variant for kernel in kept):
            held = ", ".join(sorted({gemm_spec(kernel).variant for kernel in expansion.kernels}))
            text = f"--preselected {name} has no {variant} kernels for {arch.name}; it has {held}"
            raise EmptyExpansionError(text + _set_with(name, variant, arch))
    return Expansion(kept, expansion.dropped)


def _set_with(name: str, variant: str, arch: Arch) -> str:
    """Words on the sets of the same data type and layout that have kernels of a variant."""
    others = siblings(name.removeprefix("gemm:"), arch, _PURPOSES.get(variant, (variant,)))
    return f"; {variant} kernels are in {', '.join(others)}" if others else ""


def _of_variant(dtype: str, layout: str, variant: str, arch: Arch) -> Expansion:
    kernels: list[Kernel] = []
    dropped: dict[str, int] = {}
    refused = []
    for purpose in _PURPOSES.get(variant, (variant,)):
        try:
            expansion = expand_kernel_set(f"{dtype}_{layout}_{purpose}", arch)
        except EmptyExpansionError as error:
            refused.append(str(error))
            continue
        kernels += expansion.kernels
        for rule, count in expansion.dropped.items():
            dropped[rule] = dropped.get(rule, 0) + count
    if not kernels:
        raise EmptyExpansionError("\n".join(refused))
    return Expansion(tuple(kernels), dropped)


def _combinations(wanted: Mapping[str, Sequence[str]], config: object) -> Iterator[dict[str, str]]:
    """Yield data type and layout of each part, except those that the configuration states."""
    stated = set()
    if isinstance(config, Mapping):
        stated = {key for section in config.values() if isinstance(section, Mapping) for key in section}
    for option, given, keys in (
        ("--datatype", wanted["datatype"], {"dtype", "dtype_a", "dtype_b"}),
        ("--layout", wanted["layout"], {"layout"}),
    ):
        if given and stated & keys:
            raise SpecError(f"the configuration states {', '.join(sorted(stated & keys))}; leave {option} out")
    dtypes = [{}] if stated & {"dtype", "dtype_a"} else [{"dtype": name} for name in wanted["datatype"] or (DATATYPE,)]
    layouts = [{}] if "layout" in stated else [{"layout": name} for name in wanted["layout"] or (LAYOUT,)]
    for dtype in dtypes:
        for layout in layouts:
            yield {**dtype, **layout}


def _completed(config: object, fields: Mapping[str, str], variants: Sequence[str]) -> object:
    if not isinstance(config, Mapping):
        return config  # expand_config refuses it with a better message
    if config.get("op", "gemm") != "gemm":
        stated = config["op"]
        raise SpecError(f"the configuration states op = {stated!r}; write kernelwright generate {stated} instead")
    completed = {"op": "gemm", **with_problem(config, fields)}  # CK Tile's configurations name no operation
    if variants:
        if "variants" in config:
            raise SpecError("the configuration states variants; leave --variants out")
        completed["variants"] = list(variants)
    return completed

"""The sets of norms: what models ask for, and every unrolling of it to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expansion, KernelSets
from kernelwright.codegen.operations.norm.constraints.common import DTYPES, RESULTS
from kernelwright.codegen.operations.norm.constraints.cpu import UNROLLS
from kernelwright.codegen.operations.norm.spec import Direction, Kind
from kernelwright.codegen.selecting.expand import EmptyExpansionError, archs_with
from kernelwright.codegen.selecting.specs import parse_kernel

_UNROLLS: Mapping[str, tuple[int, ...]] = {"default": (4,), "all": UNROLLS}


class NormSets(KernelSets):
    """``default`` has a kernel of each kind, direction and pair of types; ``all`` has each unrolling of them."""

    def names(self) -> tuple[str, ...]:
        """Every name."""
        return tuple(_UNROLLS)

    def archs(self, name: str) -> tuple[str, ...]:
        """The shipped processors."""
        return archs_with(lambda arch: self.expand(name, arch))

    def expand(self, name: str, arch: Arch) -> Expansion:
        """The kernels of a set; EmptyExpansionError for an architecture that is no processor."""
        if arch.backend != "cpu":
            raise EmptyExpansionError(f"set 'norm:{name}' has no kernels for {arch.name}; allowed: processors")
        return Expansion(tuple(_kernels(_UNROLLS[name], arch)))


def _kernels(unrolls: tuple[int, ...], arch: Arch) -> Iterator[Kernel]:
    for kind in Kind:
        for dtype in DTYPES:
            results = [(Direction.FORWARD, result) for result in (dtype, *RESULTS)]
            for direction, result in (*results, (Direction.BACKWARD, dtype)):
                for unroll in unrolls:
                    types = {"dtype": dtype, "dtype_y": result}
                    yield parse_kernel(
                        {"op": "norm", "kind": kind, "direction": direction, **types, "unroll": unroll}, arch
                    )

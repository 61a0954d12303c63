"""Single-kernel targets of each operation, such as ``gemm_kernel``, made from the generator's description of it."""

from __future__ import annotations

from functools import lru_cache

from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.targets.kernel import KernelTarget, kernel_fields


def kernel_targets() -> tuple[type[KernelTarget], ...]:
    """Return the targets of all operations."""
    return tuple(kernel_target(op) for op in generator_data()["operations"])


@lru_cache(maxsize=None)
def kernel_target(op: str) -> type[KernelTarget]:
    """Return the target for specs of the operation ``op``."""
    known = generator_data()["operations"][op]
    name = "".join(word.capitalize() for word in known["target"].split("_"))
    defaults = "Omitted fields get the architecture's defaults; illegal combinations are refused."
    members = {"alias": known["target"], "op": op, "core_fields": kernel_fields(op), "__module__": __name__}
    return type(f"{name}Target", (KernelTarget,), {**members, "help": f"{known['about']} {defaults}"})

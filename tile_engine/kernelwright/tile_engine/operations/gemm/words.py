"""Names of GEMM kernels in configurations of the CK Tile engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.codegen.violations import SpecError
from kernelwright.tile_engine.operation import Words

_VARIANTS = ("standard", "preshuffle", "multi_d", "stream_k", "batched", "grouped")
_LAYOUTS = ("layout_a", "layout_b", "layout_c")


def _rewritten(config: dict[str, Any]) -> dict[str, Any]:
    """Accept ``k_block_per_cu`` beside the sections, and a ``problem`` with one layout per matrix.

    Raises SpecError for ``permute_n``, which no kernel has.
    """
    if config.pop("permute_n", False):
        raise SpecError("permute_n = true: no kernel permutes N; leave it out")
    if "k_block_per_cu" in config:
        traits = config.setdefault("trait_config", {})
        config["trait_config"] = {"k_block_per_cu": [config.pop("k_block_per_cu")], **traits}
    problem = config.get("problem")
    if isinstance(problem, Mapping):
        plain = {name: _only(value) for name, value in problem.items()}
        if set(_LAYOUTS) <= set(plain):
            plain["layout"] = "".join(str(plain.pop(name)) for name in _LAYOUTS)
        config["problem"] = plain
    return config


def _only(value: object) -> object:
    """The single value of ``{"values": [one]}``, CK Tile's notation for constants."""
    values = value.get("values") if isinstance(value, Mapping) else None
    return values[0] if isinstance(values, list) and len(values) == 1 else value


WORDS = Words(
    variants={
        **{f"{prefix}{word}": {"variant": [word]} for prefix in ("", "gemm_") for word in _VARIANTS},
        "gemm_universal": {"variant": ["standard"]},
        "gemm_streamk": {"variant": ["stream_k"]},
    },
    renamed={
        **{"data_type": "dtype", "datatype": "dtype"},
        **{f"datatype_{one}": f"dtype_{one}" for one in "abc"},
        **{f"warp_{axis}": f"wave_{axis}" for axis in "mnk"},
    },
    rewritten=_rewritten,
    product_lists={"variant": "variants"},
)

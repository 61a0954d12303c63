"""Names of convolution kernels in configurations of the CK Tile engine."""

from __future__ import annotations

from kernelwright.tile_engine.operation import Words

_DIRECTIONS = {"forward": "forward", "bwd_data": "backward_data", "bwd_weight": "backward_weight"}
WORDS = Words(
    variants={
        "grouped_conv": {},
        **{word: {"direction": [ours]} for theirs, ours in _DIRECTIONS.items() for word in (theirs, ours)},
        "forward_depthwise": {"variant": ["forward_depthwise"]},
    },
    renamed={
        **{"data_type": "dtype", "datatype": "dtype", "wave_mode": "scheduler", "ndim_spatial": "spatial_dims"},
        **{"epi": "epilogue", "merged_groups": "num_groups_to_merge"},
    },
    values={"pipeline": {"basic_v1": "compv1", "basic_v2": "compv2"}},
)

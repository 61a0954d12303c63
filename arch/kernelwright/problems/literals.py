"""The words of calls as types, so that a type checker refuses ``activation="gelo"``.

A test compares them with the words of the descriptions.
"""

from __future__ import annotations

from typing import Literal

Activation = Literal["none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh"]
DOp = Literal["add", "multiply"]
ConvLayout = Literal["nwgc", "nhwgc", "ndhwgc", "ngchw"]
AttentionLayout = Literal["bshd", "bhsd"]
GemmLayout = Literal["rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc"]
AttentionMask = Literal["none", "top_left", "bottom_right"]
QScale = Literal["none", "per_tensor", "block_scale", "kv_block_scale"]

"""Attention as the tile engine measures it: forward, gradients, decoding from a cache, and appending to one."""

from kernelwright.tile_engine.operation import register
from kernelwright.tile_engine.operations.attention.measurable import Attention

register(Attention())

"""RMS norm and layer norm, forward, quantised and backward."""

from kernelwright.tile_engine.operation import register
from kernelwright.tile_engine.operations.norm.measurable import Norm

register(Norm())

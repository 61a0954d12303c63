"""Grouped convolution, forward and its gradients."""

from kernelwright.tile_engine.operation import register
from kernelwright.tile_engine.operations.convolution.measurable import Convolution

register(Convolution())

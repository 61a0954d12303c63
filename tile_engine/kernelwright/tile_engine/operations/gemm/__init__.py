"""GEMM."""

from kernelwright.tile_engine.operation import register
from kernelwright.tile_engine.operations.gemm.measurable import Gemm

register(Gemm())

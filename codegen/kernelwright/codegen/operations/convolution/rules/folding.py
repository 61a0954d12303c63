"""When kernels that multiply 64 channels at a time fold filter points along W into channels: images of few channels."""

from __future__ import annotations

from kernelwright.codegen.operations.convolution.rules.structs import Problem
from kernelwright.problems.convolution.description import ConvOp

HEADER = "kernelwright/convolution/folding.h"
PREFIX = "kw_conv_fold"

# Channels that a step of a sum multiplies, and elements that 16 bytes hold: points begin at multiples of them.
STEP = 64
LINE = 8
# Images of more channels are not folded: copying them takes longer. Gradients of folded images are fp32.
MOST = 16
MOST_GRADIENT = 8


def pitch(p: Problem) -> int:
    """Channels of a point of the folded image, or 0 where folding does not halve the steps of a sum.

    The points that one output meets along W lie side by side: its filter points along W, of so many channels each, are
    the channels of one point.
    """
    taps = p.filter[2]
    data = p.op == ConvOp.BACKWARD_DATA
    channels = p.c
    if p.groups != 1 or taps < 2 or p.dilation[2] != 1:
        return 0
    if p.c > (MOST_GRADIENT if data else MOST):
        return 0
    while not data and channels * p.stride[2] % LINE != 0:
        channels += 1
    steps = (taps * channels + STEP - 1) // STEP
    return channels if 2 * steps <= taps else 0

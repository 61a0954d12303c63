"""Predicted times of convolution kernels by kind of device; the dispatcher has them as generated C."""

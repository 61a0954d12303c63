"""Tests of operators are strict; those with ``mocks_in_use`` run mock kernels."""

from kernelwright.torch.testdata.fixtures import mocks_in_use as mocks_in_use
from kernelwright.torch.testdata.fixtures import strictness as strictness

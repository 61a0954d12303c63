"""Compile kernels where they are used: specs in, a loaded library out, kept in a cache that processes share.

Needs the package ``kernelwright[jit]``; the compilers come out of installed wheels, and nothing is downloaded.
"""

from kernelwright.jit.errors import BuildFailedError, JitDisabledError, ToolchainError
from kernelwright.jit.registry import Registry

__all__ = ["BuildFailedError", "JitDisabledError", "Registry", "ToolchainError"]

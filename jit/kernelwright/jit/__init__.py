"""Compile kernels at run time: specs in, a loaded library out, through a cache that processes share.

Needs the package ``kernelwright[jit]``. Compilers come from installed wheels; nothing is downloaded.
"""

from kernelwright.jit.errors import BuildFailedError, JitDisabledError, ToolchainError, UntrustedCacheError
from kernelwright.jit.registry import Registry

__all__ = ["BuildFailedError", "JitDisabledError", "Registry", "ToolchainError", "UntrustedCacheError"]

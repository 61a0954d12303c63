"""Compile kernels at run time: specs in, a loaded library out, through a cache shared by processes.

Needs the package ``kernelwright[jit]``. Compilers come from installed wheels; nothing is downloaded.
"""

from kernelwright.jit.errors import (
    BuildFailedError,
    JitDisabledError,
    ToolchainError,
    UntrustedCacheError,
    UnusableCacheError,
)

try:
    from kernelwright.jit.registry import Registry
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("kernelwright.jit"):
        raise
    raise ModuleNotFoundError(
        f"kernelwright.jit needs the package {missing.name}; pip install 'kernelwright[jit]'", name=missing.name
    ) from None

__all__ = [
    "BuildFailedError",
    "JitDisabledError",
    "Registry",
    "ToolchainError",
    "UntrustedCacheError",
    "UnusableCacheError",
]

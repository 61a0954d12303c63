"""PyTorch operators that run kernels: autograd, fake tensors and ``torch.compile``, on CPUs and GPUs.

Importing this package imports torch and registers the operators in torch's namespace ``kernelwright``.
"""

from kernelwright.torch import public
from kernelwright.torch.adoption.adopt import Adoption, AdoptionError, adopt, release
from kernelwright.torch.adoption.aten import intercept
from kernelwright.torch.dispatchers import DispatcherNotFoundError, forget, use
from kernelwright.torch.fallback.decisions import UnservedError
from kernelwright.torch.fallback.report import report, reset_report
from kernelwright.torch.fallback.strictness import strict
from kernelwright.torch.operator import TransformError
from kernelwright.torch.prepacking import Prepacked, prepack, prepacked
from kernelwright.torch.public import *  # noqa: F403
from kernelwright.torch.roads import roads

__all__ = [
    "Adoption",
    "AdoptionError",
    "DispatcherNotFoundError",
    "Prepacked",
    "TransformError",
    "UnservedError",
    "adopt",
    "forget",
    "intercept",
    "prepack",
    "prepacked",
    "release",
    "report",
    "reset_report",
    "roads",
    "strict",
    "use",
]
__all__ += public.__all__

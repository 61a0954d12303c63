"""Compiles kernels now, or takes them from the cache: jit.py [--cache DIR].

Needs the compilers of kernelwright[jit]; the second run compiles nothing. What a build shows goes to standard error.
"""

from __future__ import annotations

import argparse

import numpy as np
from shared import by_numpy

from kernelwright.dispatch import ConvProblem
from kernelwright.jit import Registry


def main(arguments: list[str] | None = None) -> None:
    """Compile one kernel of each direction for this CPU, and convolve with one that no shipped library has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="default: $KERNELWRIGHT_CACHE, else kernelwright in the user's cache folder")
    options = parser.parse_args(arguments)
    registry = Registry("cpu", cache=options.cache)
    registry.add_set("convolution:essential", filter="c.dtype == 'fp32' and c.layout == 'ndhwgc' and not c.bias")
    usual = next(kernel for kernel in registry.kernels if "_fwd_" in kernel.name)
    fields = usual.spec.model_dump(mode="json")
    with_tanh = registry.add({**fields, "bias": True, "activation": "tanh"})
    print(f"{len(registry.kernels)} kernels, {len(registry.missing())} to compile")

    dispatcher = registry.dispatcher(max_workers=2)
    problem = ConvProblem("forward", 2, 8, 12, (9, 10), 3, bias=True, activation="tanh")
    assert registry.select(problem) == with_tanh
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in (problem.x_shape, problem.w_shape))
    bias = rng.standard_normal(12, dtype=np.float32)
    y = dispatcher.conv_forward(x, w, bias=bias, activation="tanh")
    np.testing.assert_allclose(y, np.tanh(by_numpy(x, w) + bias), rtol=1e-4, atol=1e-4)
    print(f"{with_tanh.name}: equal to NumPy's result")


if __name__ == "__main__":
    main()

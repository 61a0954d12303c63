"""kernelwright.torch and its tests need torch; tests/pytorch/run runs them."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["torch"]

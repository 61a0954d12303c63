"""The command ``kernelwright tile-engine``."""

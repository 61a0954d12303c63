"""Command-line programs: ``kernelwright``, ``kernelwright doctor`` and ``gpu_helper``."""

"""Measure kernels in child processes, so that a hang, a crash or a wrong result costs only one kernel."""

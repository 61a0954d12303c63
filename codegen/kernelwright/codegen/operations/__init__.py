"""The operations: one folder each, listed in ``kernelwright.codegen.registry``."""

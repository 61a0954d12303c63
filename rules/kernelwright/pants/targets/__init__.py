"""Target types, one module each; the kernels of single operations are in ``operations``."""

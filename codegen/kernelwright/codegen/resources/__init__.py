"""What compiled kernels use: reports of the compilers, occupancy, limits."""

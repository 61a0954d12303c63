"""Resources of compiled kernels: reports of the compilers, occupancy, limits."""

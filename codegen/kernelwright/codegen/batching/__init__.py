"""Several kernels compiled by one command, whose output is cut into the outputs of single compiles."""

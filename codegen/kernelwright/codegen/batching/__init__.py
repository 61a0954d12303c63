"""Several kernels compiled by one command, and its output cut into what compiles of single kernels give."""

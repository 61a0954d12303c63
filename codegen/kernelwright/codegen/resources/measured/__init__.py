"""Hardware measurements of kernels, beside the counts of their code."""

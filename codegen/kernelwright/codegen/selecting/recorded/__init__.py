"""From recorded problems to the kernels that serve them best, by predicted or measured times."""

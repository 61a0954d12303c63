"""A self-contained HTML page for a table: charts, best kernels, regret, failures, regressions."""

"""One self-contained HTML page of a table: charts, best kernels, regret, failures, regressions."""

"""Foreign code in child processes, with limits on time and output, and without leftover processes."""

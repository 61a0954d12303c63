"""Foreign code in child processes: with limits of time and output, and nothing of it left behind."""

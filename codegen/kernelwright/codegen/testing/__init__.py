"""For tests, not shipped: a backend without a compiler, and crowds of processes that are killed."""

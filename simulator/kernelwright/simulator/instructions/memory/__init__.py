"""Instructions that load, store and modify global memory, LDS and scratch."""

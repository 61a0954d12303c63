"""For tests only, not shipped: single instructions, waves, code objects, the stand-in HIP runtime."""

"""Architecture sections shared by operations whose kernels are tiled GEMMs, including implicit ones."""

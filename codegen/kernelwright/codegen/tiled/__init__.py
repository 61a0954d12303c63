"""What operations whose kernels are tiled GEMMs, implicit ones too, share: sections of architectures."""

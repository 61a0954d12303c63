"""Files that others wrote, read with bounds, and those of architectures; needs nothing but the standard library."""

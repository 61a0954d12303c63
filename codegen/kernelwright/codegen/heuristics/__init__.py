"""Learned selection: features of a problem and a kernel, models over them, and their C source."""

"""Learned selection: the features of a problem and a kernel, models of them, and their C source."""

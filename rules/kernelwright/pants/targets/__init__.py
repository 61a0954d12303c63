"""Target types and their fields; the kernel targets of single operations are in ``operations``."""

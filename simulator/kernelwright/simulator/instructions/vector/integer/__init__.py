"""Vector instructions on integers: arithmetic, bits and bytes, 64-bit operations."""

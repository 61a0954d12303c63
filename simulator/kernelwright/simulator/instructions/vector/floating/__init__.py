"""Vector instructions on floating-point numbers: arithmetic, rounding, conversions."""

"""Vector instructions: operands, results and encodings, comparisons, moves between lanes."""

"""The operations that the tile engine measures, one module each."""

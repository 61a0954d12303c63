"""The operations that the tile engine measures, a module for each."""

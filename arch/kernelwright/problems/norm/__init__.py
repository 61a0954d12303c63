"""RMS norm and layer norm: their description and their problems."""

"""Matrix instructions: MFMA and WMMA."""

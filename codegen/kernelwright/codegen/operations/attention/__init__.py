"""Fused attention: specs of nine kernel families, names, receipts and rules."""

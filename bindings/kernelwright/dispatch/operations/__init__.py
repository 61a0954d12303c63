"""The operations of the C ABI, a folder each; importing one registers it."""

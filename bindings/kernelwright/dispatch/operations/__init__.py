"""The operations of the C ABI, one folder each; importing an operation registers it."""

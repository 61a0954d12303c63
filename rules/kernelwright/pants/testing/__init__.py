"""What only tests need."""

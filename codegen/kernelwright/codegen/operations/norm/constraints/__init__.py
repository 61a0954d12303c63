"""What makes the spec of a norm illegal."""

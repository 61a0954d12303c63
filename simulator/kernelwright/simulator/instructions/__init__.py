"""The semantics of instructions: a table from names to builders of steps, filled by the modules below."""

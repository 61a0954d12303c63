"""Vector instructions on several elements of a register: packed halves, mixed precision, dot products."""

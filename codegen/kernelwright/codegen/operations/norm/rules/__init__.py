"""Which problems a norm kernel serves."""

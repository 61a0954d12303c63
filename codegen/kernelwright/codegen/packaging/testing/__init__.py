"""For tests of packaging: keys, and a ``dist`` folder with a wheel and a library."""

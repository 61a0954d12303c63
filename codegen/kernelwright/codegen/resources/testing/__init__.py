"""For tests of what is packaged: keys, and a ``dist`` folder of a wheel and a library."""

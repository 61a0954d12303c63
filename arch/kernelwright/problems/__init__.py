"""Problems of operations, defined once for C, Python and JSON; needs nothing but the standard library."""

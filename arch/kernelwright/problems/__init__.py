"""Problems of operations, as C, Python and JSON know them, written once; needs nothing but the standard library."""

"""C generated from the descriptions of operations: public headers, and the dispatcher's tables of fields."""

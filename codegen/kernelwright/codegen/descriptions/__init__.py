"""C of the descriptions of operations: headers for everyone, and tables of fields for the dispatcher."""

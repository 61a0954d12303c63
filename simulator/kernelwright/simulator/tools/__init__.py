"""The command line: static coverage, the table of modelled instructions, disassembly."""

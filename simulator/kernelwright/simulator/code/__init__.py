"""Code objects and machine code: ELF files, kernel descriptors, architectures, decoded instructions."""

"""Code shared by all operations: the C ABI frame, errors, devices, plans, selection and explanations."""

"""What every operation shares: the C ABI frame, errors, devices, plans, selection and explanations."""

"""One launch: a kernel as bound steps, the waves of its workgroups, the device that launches reach it through."""

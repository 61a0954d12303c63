"""One launch: a kernel as bound steps, the waves of its workgroups, and the device through which launches arrive."""

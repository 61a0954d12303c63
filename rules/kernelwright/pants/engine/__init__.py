"""Every request that this plugin makes for types of Pants' own: files, processes, targets."""

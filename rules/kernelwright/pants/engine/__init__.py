"""All requests of this plugin for types of Pants' own: files, processes, targets."""

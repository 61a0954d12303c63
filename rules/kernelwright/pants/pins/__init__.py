"""Hash-pinned requirements; the wheel of this plugin holds them beside this file."""

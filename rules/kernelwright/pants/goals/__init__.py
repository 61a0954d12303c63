"""Goals that the plugin adds or extends."""

"""Books of a small shop."""

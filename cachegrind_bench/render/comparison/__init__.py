"""A comparison as text: what it says is in `view` and `words`, the other modules only lay it out, one per format."""

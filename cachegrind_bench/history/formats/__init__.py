"""A history in the formats of other tools, and back where a format carries enough: values in, text out."""

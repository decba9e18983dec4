"""What the Python functions of one benchmark cost, as a flame graph: one page that loads nothing."""

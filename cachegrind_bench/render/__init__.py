"""Results as text: each renderer returns one format, and decides nothing. Only `progress` writes."""

"""What looks into CPython: memory whose layout belongs to the versions in `verified`, and only to these."""

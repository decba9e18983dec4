"""What runs in the pytest that was called."""

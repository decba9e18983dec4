"""What runs in the measured process, and how both talk to each other: imports the standard library and pytest only."""

"""What the commands, the pytest plugin and the action do: each takes a request, returns a value, and prints nothing itself."""

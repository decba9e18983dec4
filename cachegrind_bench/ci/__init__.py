"""What runs in a CI service: which job this is, what it has to do, and its exchange with GitHub."""

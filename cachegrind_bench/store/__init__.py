"""Where results are kept: histories in files, a Git branch or a database, and saved baselines."""

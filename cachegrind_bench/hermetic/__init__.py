"""What makes two runs of one command the same: environment, randomness, launcher, and what was run."""

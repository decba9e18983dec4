"""Fuzzing of everything that is read."""

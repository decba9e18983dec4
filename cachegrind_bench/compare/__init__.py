"""Compares two results: what changed, by how much, and which function did it. Pure functions over the values of `model`."""

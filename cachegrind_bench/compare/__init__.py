"""Compares two results: what moved, by how much, who did it. Pure functions over the values of `model`."""

"""The version, in a leaf module so that nothing has to import the package root for it."""

__version__ = "0.1.0"

"""Python profiles in the formats of other tools."""

NATIVE = "native code under no Python function"

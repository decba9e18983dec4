"""The command line: parse, call one use case, render. One file per command."""

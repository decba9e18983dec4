"""The project's configuration: which keys there are, and a file's text as checked values. Runs nothing."""

"""Everything known about Valgrind: finding it, its options, running it, and the files it writes."""

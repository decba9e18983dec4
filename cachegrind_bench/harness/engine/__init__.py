"""How iterations of a framework's own loop are counted, whichever framework it is."""

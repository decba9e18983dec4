"""What a history shows: series of one benchmark over commits, where they stepped, crept or cannot be trusted. Pure."""

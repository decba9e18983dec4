"""How Python starts in a measured process: with the standard library only, and seeing no more of folders than it needs."""

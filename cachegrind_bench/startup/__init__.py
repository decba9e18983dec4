"""How Python starts in a measured process: without seeing more of folders than it needs, so that their entries move no counts.

Runs inside of Valgrind, before site-packages can be imported from: imports the standard library only.
"""

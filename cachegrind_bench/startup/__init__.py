"""How Python starts in a measured process: without seeing more of folders than it needs, so that their entries move no counts.

Most of it runs before site-packages can be imported from: it imports the standard library only.
"""

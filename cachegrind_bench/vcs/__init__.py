"""What git knows: the commit that is measured, those before it, and the objects of its database."""

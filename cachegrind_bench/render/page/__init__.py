"""What our HTML pages have in common: how they are made safe, their looks, and the choice of light or dark."""

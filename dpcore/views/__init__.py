"""`views`: what notebooks and terminals show of objects: sheets and plots, public facts alone."""

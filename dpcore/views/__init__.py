"""`views`: what notebooks and terminals show of objects: summaries and plots, public facts only."""

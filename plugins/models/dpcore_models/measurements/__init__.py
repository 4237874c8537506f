"""Linear measurements of one vector of counts: strategies, and bars from the law of their noise."""

"""Linear measurements of one vector of counts: residuals, strategies, bars from their noise."""

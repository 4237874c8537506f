"""Linear measurements of one vector of counts: residuals, strategies, intervals from their
noise.
"""

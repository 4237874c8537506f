"""Linear measurements of one exact vector of counts: residuals, their noise, what follows."""

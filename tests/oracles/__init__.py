"""Independent oracles: definitions, quadrature, brute force. Nothing here imports dpcore."""

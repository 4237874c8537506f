"""What the steps of a descent say of its curvature, its coordinates, and how it is mended."""

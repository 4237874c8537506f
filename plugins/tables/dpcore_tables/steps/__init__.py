"""What the steps of a descent say of its curvature, and along which coordinates it goes."""

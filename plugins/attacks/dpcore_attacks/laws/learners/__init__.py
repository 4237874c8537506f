"""Laws of learners, feature maps and kernels, and of what they read."""

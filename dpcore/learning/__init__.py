"""What learners share: learners of learners, bounds, feature maps, solvers, theorems."""

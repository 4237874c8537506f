"""Privacy loss distributions on a grid: from curves to masses, and their certified composition."""

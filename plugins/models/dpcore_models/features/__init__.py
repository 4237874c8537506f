"""Feature maps that learners of several plugins use: random features of two kinds."""

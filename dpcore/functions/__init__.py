"""Functions as statistics: their learners, their oracles, the kernels in whose space they lie."""

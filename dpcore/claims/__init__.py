"""Claims: what a request costs, from declarations only."""

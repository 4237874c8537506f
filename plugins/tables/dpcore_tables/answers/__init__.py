"""What answers fix for the asks after them."""

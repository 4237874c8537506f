"""What is asked, and what answers fix for the asks after them."""

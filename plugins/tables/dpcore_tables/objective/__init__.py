"""What a fit minimises: the loss of labels, and how much each record counts."""

"""Synthetic rows from tables that were measured with differential privacy.

Rows are made from released tables by a public rule, in whole numbers, so that they cost nothing
more and replay to the byte.
"""

provides = {
    # What is published: rows, and the tables they were made from.
    "learners": {"synthetic.rows": "dpcore_synthetic.learner:Rows"},
    "bounds": {"synthetic.rows": "dpcore_synthetic.learner:RowsBound"},
    "examples": {"synthetic.*": "examples/*.yaml"},
}

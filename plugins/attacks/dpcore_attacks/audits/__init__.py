"""Audits: lower confidence bounds on epsilon from samples of a mechanism or of a whole run.

An audit can refute a claim and never prove one. What is sampled is a synthetic pair of neighbours.
"""

"""dpcore: differential privacy from plugins, with claims never stronger than their proofs."""

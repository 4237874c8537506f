"""Check from its published folder only whether a run's guarantee follows: `verify`."""

from dpcore_verify.verdict import Verdict, verify

__all__ = ["Verdict", "verify"]

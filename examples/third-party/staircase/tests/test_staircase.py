"""Every law and attack of dpcore."""

import staircase

from dpcore_attacks.pytest_checks import checks

test_conformance = checks(staircase)

"""Property tests draw the same examples in every run; HYPOTHESIS_PROFILE=explore draws new ones.

`tests/long.txt` names the cases that are slow beside quicker ones of the same test: they are marked
`slow` here, so that a test keeps its cases together and the default tests keep to their budget.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

LONG = Path(__file__).parent / "tests" / "long.txt"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what the list names."""
    long = set(LONG.read_text().splitlines())
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)

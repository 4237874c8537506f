"""The checker confirms what every shipped example states, as soon as it is priced."""

from pathlib import Path

import pytest
from verified import verdict_on

from dpcore.errors import NoClaimError
from dpcore.specs.spec import load_spec

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("plugins/*/dpcore_*/examples/*.yaml")])
REPRODUCED = {"printed", "equation_1", "algorithm_1", "kaczmarz", "published_code"}
"""Examples of what is known to be false, which state nothing."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parts[-4]} {path.stem}")
def test_an_example_is_confirmed(path, tmp_path):
    spec = load_spec(path)
    if path.stem in REPRODUCED:
        with pytest.raises(NoClaimError):
            spec.price()
        return
    verdict = verdict_on(spec.price(), spec, tmp_path)
    assert verdict, verdict.reason
    assert {query.kind for query in verdict.queries} <= {"derived", "taken"}

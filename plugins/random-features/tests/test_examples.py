import pytest

from dpcore import Registry
from dpcore.guarantee import Status
from dpcore.specs.spec import load_spec

EXAMPLES = Registry.default().load("random-features").examples


PRINTED = {f"random_features.{name}" for name in ("algorithm_1", "kaczmarz", "published_code")}


@pytest.mark.parametrize("name", sorted({*EXAMPLES} - PRINTED))
def test_every_example_is_priced_as_proved(name):
    spec = load_spec(EXAMPLES[name], Registry.default())
    guarantee = spec.price().guarantee
    assert guarantee.status is Status.PROVED
    assert guarantee.epsilon <= 4

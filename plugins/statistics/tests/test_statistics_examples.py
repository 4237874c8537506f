import pytest

from dpcore import Registry
from dpcore.guarantee import Status
from dpcore.specs.spec import load_spec

EXAMPLES = Registry.default().load("statistics").examples


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_is_priced_as_proved(name):
    spec = load_spec(EXAMPLES[name], Registry.default())
    assert spec.price().guarantee.status is Status.PROVED

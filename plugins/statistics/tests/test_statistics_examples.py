from pathlib import Path

import pytest

from dpcore import Registry, Status
from dpcore.specs.spec import load_spec
from dpcore_statistics import dpcore_examples

EXAMPLES = dpcore_examples()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_example_is_priced_as_proved(name):
    spec = load_spec(EXAMPLES[name], Registry.default())
    assert spec.price().guarantee.status is Status.PROVED


def test_every_shipped_file_is_announced():
    folder = Path(next(iter(EXAMPLES.values()))).parent
    assert sorted(folder.glob("*.yaml")) == sorted(EXAMPLES.values())

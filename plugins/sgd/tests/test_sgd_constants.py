"""The paper's constants are an independent study's, by the command that reproduces papers."""

from dpcore_experiments.compare import judged
from dpcore_experiments.experiment import load_experiment
from dpcore_experiments.running import run


def test_every_constant_is_within_its_digits():
    experiment = load_experiment("sgd/constants")
    cells = judged(experiment.text, run(experiment, None))
    assert len(cells) == 20
    assert [cell for cell in cells if not cell.within] == []

"""The paper's constants are an independent study's, by the command that reproduces papers."""

from dpcore.conformance.experiments.experiment import load_experiment
from dpcore.conformance.experiments.judging import judged
from dpcore.conformance.experiments.running import run


def test_every_constant_is_within_its_digits():
    experiment = load_experiment("kernel_ridge/constants")
    cells = judged(experiment.text, run(experiment, None))
    assert len(cells) == 32
    assert [cell for cell in cells if not cell.within] == []

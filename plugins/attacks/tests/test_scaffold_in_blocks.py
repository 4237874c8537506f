"""A learner from the scaffold, contributions only: proved, attacked and run in blocks."""

import importlib

import numpy as np

from dpcore import SecretRandomness
from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.guarantee import Statistic
from dpcore.private.engines.local import LocalEngine
from dpcore.query import Reads
from dpcore.registry.registry import Registry
from dpcore.sources.opening import open_source
from dpcore.specs.spec import load_spec
from dpcore.summing import SummingLearner
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.sums import LAWS, sum_verdicts

ROWS = 300


def test_a_learner_of_contributions_alone_is_proved_attacked_and_run_in_blocks(
    tmp_path, monkeypatch
):
    folder = write_plugin("in-blocks", PluginKind.SUM, tmp_path)
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module("dpcore_in_blocks")
    registry = Registry.of(module)
    ((_, path),) = registry.load(module.__name__).examples.items()
    spec = load_spec(path, registry)
    plan = spec.price()
    (scheduled,) = plan.schedule.releases
    learner = scheduled.learner
    assert type(learner).partial is SummingLearner.partial
    assert scheduled.reads is Reads.SUMS
    assert plan.schedule.in_blocks
    assert {planned_query.statistic for planned_query in plan.guarantee.basis.queries} == {
        Statistic.SUM
    }

    case = Case.of(plan, scheduled)
    verdicts = sum_verdicts(case)
    assert {verdict.law for verdict in verdicts} == {*LAWS}
    assert not [verdict for verdict in verdicts if verdict.failed]
    findings = falsify(case, Effort(pairs=300))
    assert findings
    assert all(found.pairs and not found.broken for found in findings)

    rng = np.random.default_rng(1)
    table = {
        "a": rng.uniform(0, 10, ROWS),
        "b": rng.uniform(-1, 1, ROWS),
        "c": rng.choice(["red", "green", "blue"], ROWS),
        "y": rng.uniform(0, 1, ROWS),
    }
    lines = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "records.csv").write_text("\n".join([",".join(table), *lines]) + "\n")
    source = open_source("records.csv", tmp_path, spec.csv, spec.request.domain)
    expected = plan.run(table, secret=SecretRandomness.rehearsal(3)).model.arrays()
    for threads, rows in [(1, 4096), (2, 17)]:
        with LocalEngine(threads=threads, rows=rows) as engine:
            outcome = plan.run(source, secret=SecretRandomness.rehearsal(3), engine=engine)
            assert type(outcome.opened.train).__name__ == "EngineRecords"
        for name, array in outcome.model.arrays().items():
            assert array.tobytes() == expected[name].tobytes()

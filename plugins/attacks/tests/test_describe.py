"""`dpcore describe`: what it says of a component is what the plan answers and what its code has."""

import importlib
import json

import pytest
from click.testing import CliRunner

import dpcore_attacks
from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, Distance, Registry
from dpcore.console.app import app
from dpcore.console.layout import lines
from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.errors import ParameterError, RegistryError
from dpcore.registry.kinds import MECHANISM
from dpcore.specs.spec import spec_of_text
from dpcore_attacks.commands.describe import summary_text
from dpcore_attacks.component_summary import summaries


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """Two strangers' learners next to the core's components: one with a theorem, one that sums."""
    folder = tmp_path_factory.mktemp("plugins")
    with pytest.MonkeyPatch.context() as patch:
        modules = []
        for kind in (PluginKind.LEARNER, PluginKind.SUM):
            patch.syspath_prepend(str(write_plugin(f"described-{kind}", kind, folder)))
            modules.append(importlib.import_module(f"dpcore_described_{kind}"))
        yield Registry.of(*modules, dpcore_attacks)


@pytest.fixture(scope="module")
def learner(registry):
    (summary,) = summaries("described_learner.correlation", registry)
    return summary


def test_a_learner_is_described_by_what_it_declares(learner):
    assert learner.kind == "learner"
    assert learner.provider == "dpcore_described_learner"
    assert learner.claim.startswith("Publish the correlation of features and labels")
    assert learner.norms == ("coefficients: l2",)
    (field,) = learner.fields
    assert (field.name, field.default, field.is_calibrated) == ("features", "required", False)
    # Its theorem is about replace-one and what it covers; under add/remove it refuses.
    assert {*learner.relations} == {str(REPLACE_ONE), str(REPLACE_LABEL)}


def test_what_fits_is_in_every_mechanism_once_and_each_refusal_says_why(learner, registry):
    assert [pair.name for pair in learner.fits] == registry.names(MECHANISM)
    fits = {pair.name: pair for pair in learner.fits}
    for name in ("gaussian", "laplace"):
        assert fits[name].relations == (str(REPLACE_ONE),)
        assert not fits[name].reason
    assert not fits["discrete_gaussian"].relations
    assert "whole numbers" in fits["discrete_gaussian"].reason
    assert all(bool(pair.reason) != bool(pair.relations) for pair in learner.fits)


def test_the_example_of_a_learner_has_a_price(learner, registry):
    assert learner.example_name == "described_learner"
    spec_of_text(learner.example, "example", registry).price()


@pytest.mark.slow  # two relations, three learners, two samplings
def test_a_mechanism_is_priced_with_every_learner_and_with_samples(registry):
    (summary,) = summaries("gaussian", registry, "mechanism")
    noise = next(field for field in summary.fields if field.name == "noise_multiplier")
    assert noise.is_calibrated
    assert "Balle" in summary.source
    assert {norm.split()[0] for norm in summary.norms} == {
        str(norm) for norm in (Distance.L1, Distance.L2, Distance.LINF)
    }
    assert {*summary.relations} == {str(REPLACE_ONE), str(ADD_REMOVE)}
    # Subsets of fixed size need a public number of records, so add/remove has none.
    assert f"WithoutReplacement ({REPLACE_ONE})" in summary.samplings
    relations = {pair.name: pair.relations for pair in summary.fits}
    assert relations["described_learner.correlation"] == (str(REPLACE_ONE),)
    assert {*relations["described_sum.correlation"]} == {str(REPLACE_ONE), str(ADD_REMOVE)}


def test_a_mechanism_that_no_example_names_gets_one_that_has_a_price(registry):
    (summary,) = summaries("laplace", registry, "mechanism")
    assert summary.example_name == ""
    assert "mechanism: laplace" in summary.example
    spec_of_text(summary.example, "example", registry).price()


def test_bounds_events_accountants_and_parts_are_described_too(registry):
    (bound,) = summaries("sum", registry, "bound")
    fits = {pair.name: pair.relations for pair in bound.fits}
    assert {str(REPLACE_ONE), str(ADD_REMOVE)} <= {*fits["described_sum.correlation"]}
    assert "described_learner.correlation" not in fits
    (event,) = summaries("laplace", registry, "event")
    assert {pair.name for pair in event.fits if not pair.reason} >= {"pld", "renyi"}
    assert "event: laplace" in event.example
    (accountant,) = summaries("gdp", registry)
    assert [pair.name for pair in accountant.fits if not pair.reason] == ["gaussian"]
    (features,) = summaries("identity", registry)
    assert "described_sum.correlation" in {pair.name for pair in features.fits}
    assert features.example_name


def test_one_name_of_several_kinds_has_a_sheet_for_each(registry):
    assert [summary.kind for summary in summaries("gaussian", registry)] == [
        "mechanism",
        "event",
        "kernel",
    ]


def test_unknown_names_and_kinds_are_told_with_what_is_near(registry):
    with pytest.raises(RegistryError, match=r"did you mean 'described_sum\.correlation'"):
        summaries("described_sum.corelation", registry)
    with pytest.raises(RegistryError, match="no accountant is called 'gaussian'"):
        summaries("gaussian", registry, "accountant")
    with pytest.raises(ParameterError, match="learner"):
        summaries("gaussian", registry, "lerner")


def test_a_sheet_fits_a_terminal_and_json_holds_all_of_it(learner, registry, monkeypatch):
    monkeypatch.setattr(Registry, "default", lambda: registry)
    narrow = lines(summary_text(learner), 80)
    assert max(map(len, narrow)) <= 80
    run = CliRunner().invoke(app, ["describe", "described_learner.correlation"])
    assert run.exit_code == 0, run.output
    for part in ("fields:", "fits:", "does not fit:", "example (described_learner):"):
        assert part in run.output
    run = CliRunner().invoke(app, ["describe", "described_learner.correlation", "--json"])
    assert json.loads(run.output) == [json.loads(json.dumps(learner.to_dict()))]
    run = CliRunner().invoke(app, ["describe", "described_learner.corelation"])
    assert run.exit_code == 2
    assert "did you mean" in run.output

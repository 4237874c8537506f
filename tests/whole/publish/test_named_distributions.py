"""A guarantee lists whose code was named, even where that code hands back an object of the core."""

import contextlib
import types

import attrs
import msgspec
import numpy as np
import pytest
import yaml

import dpcore
from dpcore import Registry, hookimpl
from dpcore.errors import SourceError
from dpcore.private.engines.choice import EngineChoice
from dpcore.private.engines.local import LocalEngine
from dpcore.registry.distributions import UNKNOWN
from dpcore.registry.index import Provides
from dpcore.source import Location, Source, TableSource
from dpcore.sources.opening import CsvFile
from dpcore.specs.spec import load_spec
from dpcore.transcript.replay_process import HERE as ONLY_HERE

HERE = __name__.partition(".")[0].replace("_", "-")
RELEASE = {
    "name": "exact",
    "learner": {"name": "linear.sufficient_statistics", "features": "identity"},
    "mechanism": "gaussian",
}


@attrs.frozen(kw_only=True)
class Borrowed(Location):
    """A location whose records the core reads."""

    path: str

    @property
    def name(self):
        return "borrowed"

    def open(self, reading) -> Source:
        return CsvFile(csv=self.path).open(reading)


@attrs.frozen(eq=False)
class Copied(Source):
    """A source of this module, of which a session keeps the cells only."""

    source: Source

    def parts(self):
        return self.source.parts()


@attrs.frozen(kw_only=True)
class OwnClass(Borrowed):
    def open(self, reading) -> Source:
        return Copied(super().open(reading))


@attrs.frozen(kw_only=True)
class Inside(Location):
    """A location that hands over a table, as if it were a file."""

    path: str = ""

    @property
    def name(self):
        return "inside"

    def open(self, reading) -> Source:
        return TableSource({name: ["0.5"] * 40 for name in reading.names})


@attrs.frozen(kw_only=True)
class BorrowedEngine(EngineChoice):
    @contextlib.contextmanager
    def opened(self, spool):
        with LocalEngine(spool=spool) as engine:
            yield engine


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    lines = [",".join(map(repr, row)) for row in random.uniform(-1, 1, (40, 3)).tolist()]
    (tmp_path / "people.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    return tmp_path


def spec_of(folder, source="people.csv", *, sealed=False):
    """The spec's path; no mechanism and no learner of it comes from this module."""
    domain = {"records": 40, "columns": {"a": [-1, 1], "b": [-1, 1]}, "target": [-1, 1]}
    text = {
        "dpcore": 1,
        "data": {"source": source, "target": "y", "domain": domain},
        "adjacency": "replace_one",
        "budget": {"epsilon": 2, "delta": 1e-5},
        "releases": [RELEASE],
        **({"sealed": True} if sealed else {}),
    }
    (folder / "s.yaml").write_text(yaml.safe_dump(text))
    return folder / "s.yaml"


def registry_of():
    """The packaged plugins, and this module's source."""
    module = types.ModuleType("borrowers")
    module.dpcore_sources = hookimpl(specname="dpcore_sources")(lambda: {"borrowed": Borrowed})
    registry = Registry.default()
    return attrs.evolve(registry, modules={**registry.modules, "here": module})


def test_a_spec_source_that_the_core_reads(folder):
    source = {"name": "borrowed", "path": str(folder / "people.csv")}
    run = dpcore.run(load_spec(spec_of(folder, source), registry_of()), runs=folder / "runs")
    assert run.guarantee.provenance.distributions[HERE] == UNKNOWN
    assert dpcore.load_run(run.folder, registry_of()).guarantee == run.guarantee


def test_a_location_handed_to_run(folder):
    table = dpcore.Unopened(location=Borrowed(path=str(folder / "people.csv")))
    run = dpcore.run(spec_of(folder), table=table, runs=folder / "runs")
    assert run.guarantee.provenance.distributions[HERE] == UNKNOWN


@pytest.mark.parametrize("location", [Borrowed, OwnClass])
def test_a_location_handed_to_a_session(folder, location):
    domain = dpcore.Domain(columns={"a": dpcore.Range(-1, 1)}, exact=40)
    table = dpcore.Unopened(location=location(path=str(folder / "people.csv")))
    budget = dpcore.PrivacyBudget(epsilon=1, delta=1e-6)
    with dpcore.Session(budget, domain, table, replaying=ONLY_HERE) as session:
        session.mean("a", epsilon=0.5)
        guarantee = session.releases[0].guarantee
    assert guarantee.provenance.distributions[HERE] == UNKNOWN


def test_a_location_handed_to_a_plan(folder):
    plan = load_spec(spec_of(folder)).price()
    table = dpcore.Unopened(location=Borrowed(path=str(folder / "people.csv")))
    assert plan.run(table).guarantee.provenance.distributions[HERE] == UNKNOWN


def test_an_engine_that_is_the_cores(folder):
    run = dpcore.run(spec_of(folder), engine=BorrowedEngine(), runs=folder / "runs")
    assert run.guarantee.provenance.distributions[HERE] == UNKNOWN


def test_a_source_whose_package_is_not_its_distribution(folder):
    entry = msgspec.structs.replace(
        Registry.default().entries["statistics"],
        entry_point=__name__.partition(".")[0],
        provides=Provides(),
    )
    registry = registry_of()
    entries = {**registry.entries, "borrowers": entry}
    registry = attrs.evolve(registry, entries=entries)
    source = {"name": "borrowed", "path": str(folder / "people.csv")}
    run = dpcore.run(load_spec(spec_of(folder, source), registry), runs=folder / "runs")
    assert "dpcore-statistics" in run.guarantee.provenance.distributions
    assert HERE not in run.guarantee.provenance.distributions


def test_a_sealed_run_takes_no_table_from_a_location(folder):
    with pytest.raises(SourceError, match="files and queries only"):
        dpcore.run(spec_of(folder, sealed=True), table=dpcore.Unopened(location=Inside()))


def test_a_table_from_a_location_is_held_to_its_declared_types(folder):
    with pytest.raises(SourceError, match="'a'"):
        dpcore.run(spec_of(folder), table=dpcore.Unopened(location=Inside()))

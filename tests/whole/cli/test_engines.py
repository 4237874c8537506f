"""`dpcore run --engine`: the operator's words only choose what holds the records."""

import types

import pytest

from dpcore import hookimpl
from dpcore.console.options import engine_choice
from dpcore.errors import RegistryError, RequestError, SpecError
from dpcore.private.engines.choice import EngineChoice, Local
from dpcore.registry.kinds import ENGINE
from dpcore.registry.registry import Registry
from dpcore.specs.spec import spec_of_text


def test_the_command_line_comes_before_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert engine_choice(None, None, None) is None
    (tmp_path / "dpcore").mkdir()
    path = tmp_path / "dpcore" / "engine.yaml"
    path.write_text("engine: dask\nscheduler: tls://there:8786\n")
    found = engine_choice(None, None, None)
    assert (type(found).__name__, found.scheduler) == ("DaskCluster", "tls://there:8786")
    assert engine_choice("local", None, None) == Local()
    assert engine_choice("dask", None, 2).workers == 2
    path.write_text("engine: dask\nadress: tls://there:8786\n")
    with pytest.raises(SpecError, match="adress"):
        engine_choice(None, None, None)


def test_what_cannot_be_chosen_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(RequestError, match="add --engine"):
        engine_choice(None, "tls://there:8786", None)
    with pytest.raises(RegistryError, match="no admitted plugin provides engine 'dusk'"):
        engine_choice("dusk", None, None)
    with pytest.raises(RequestError, match="no scheduler"), Local(workers=2).opened(tmp_path):
        pass


def test_an_engine_comes_by_a_hook_and_no_spec_names_it():
    module = types.ModuleType("mine")

    class Mine(EngineChoice):
        def opened(self, spool):
            raise NotImplementedError

    @hookimpl
    def dpcore_engines():
        return {"mine.engine": Mine}

    module.dpcore_engines = dpcore_engines
    assert Registry.of(module).component(ENGINE, "mine.engine") is Mine
    spec_of_text(SPEC, "spec.yaml")
    with pytest.raises(SpecError, match="engine"):
        spec_of_text(SPEC + "engine: dask\n", "spec.yaml")


SPEC = """
dpcore: 1
data:
  source: data.csv
  target: y
  domain: {records: 10, columns: {a: [-1, 1]}, target: [-1, 1]}
adjacency: replace_one
budget: {epsilon: 1, delta: 1e-6}
release: {learner: linear.staged_gradient, mechanism: gaussian}
"""

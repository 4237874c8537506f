"""`dpcore examples` reaches every spec that an admitted plugin ships."""

import pytest
from click.testing import CliRunner

from dpcore.registry.plugin_files import shipped
from dpcore.registry.registry import Registry
from dpcore.specs.spec import load_spec
from dpcore_statistics.start.examples_command import examples


def report(*arguments):
    return CliRunner().invoke(examples, arguments)


@pytest.fixture(autouse=True)
def wide(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_the_list_names_every_example_of_every_plugin_and_what_it_shows():
    listed = report("list").stdout
    for plugin in ("kernel-ridge", "linear", "ntk", "random-features", "sgd", "statistics"):
        examples = Registry.default().load(plugin).examples
        assert examples
        assert all(name in listed for name in examples)
    assert "T4, with the exact number of records" in listed
    printed = " ".join(listed.split())  # a sentence that its comment breaks
    assert "rests on the promise that no dataset's kernel matrix has an eigenvalue" in printed


def test_what_is_shown_is_the_file():
    path = shipped(Registry.default(), "examples")["random_features.ridge"]
    assert report("show", "random_features.ridge").stdout == path.read_text()


def test_a_copy_is_a_spec_with_the_files_that_it_names_and_overwrites_none(tmp_path):
    done = report("copy", "kernel_ridge.function", str(tmp_path / "mine"))
    assert done.exit_code == 0
    assert {p.name for p in (tmp_path / "mine").iterdir()} == {"function.yaml", "patients.csv"}
    assert load_spec(tmp_path / "mine" / "function.yaml").price().guarantee
    again = report("copy", "kernel_ridge.function", str(tmp_path / "mine"))
    assert again.exit_code == 2
    assert "already holds function.yaml" in again.output


def test_a_mistyped_example_gets_the_nearest_name():
    done = report("show", "random_features.rigde")
    assert done.exit_code != 0
    assert "did you mean 'random_features.ridge'" in done.output


def test_a_name_that_is_none_is_refused_with_where_names_stand():
    done = report("show", "nothing at all")
    assert done.exit_code == 2
    assert "`dpcore examples list` shows them" in done.output
    assert "did you mean 'random_features.ridge'" in report("copy", "random_features.rigde").output


def test_a_copy_goes_to_a_folder_and_not_to_a_file_s_name(tmp_path):
    done = report("copy", "random_features.ridge", str(tmp_path / "mine.yaml"))
    assert done.exit_code == 2
    assert "needs a folder" in done.output
    assert not (tmp_path / "mine.yaml").exists()

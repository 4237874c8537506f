import pytest
from hypothesis import given, strategies as st

from dpcore.errors import SpecError
from dpcore.yaml.located import LARGEST_FILE, MOST_LISTED, MOST_NODES, of_plain, parse, read


def test_scalars_follow_the_core_schema_of_yaml_1_2():
    text = (
        "[no, yes, on, 1e-5, 1.5, .5, 1., 0o17, 0x1F, -3, +4, 012, ~, null, true, False, '1', 1_0]"
    )
    values = ["no", "yes", "on", 1e-5, 1.5, 0.5, 1.0, 15, 31, -3, 4, 12, None, None, True, False]
    assert parse(text, "t").plain() == [*values, "1", "1_0"]
    assert [type(v) for v in parse("[1, 1.0]", "t").plain()] == [int, float]


def test_values_and_keys_remember_where_they_stood():
    node = parse("a: 1\nb:\n  - x\n  - {c: 2}\n", "f.yaml")
    assert node.where == "f.yaml:1:1"
    assert node.where_key("b") == "f.yaml:2:1"
    assert node.value["b"].value[1].value["c"].where == "f.yaml:4:9"


def test_keys_are_text_whatever_they_look_like():
    assert parse("{no: 1, 2020: 2, true: 3}", "t").plain() == {"no": 1, "2020": 2, "true": 3}


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "t:1:1", "empty"),
        ("# only a comment", "t:1:1", "empty"),
        ("a: 1\na: 2", "t:2:1", "twice"),
        ("a: &x 1", "t:1:4", "anchors"),
        ("a: *x", "t:1:4", "anchors"),
        ("&x a: 1", "t:1:1", "anchors"),
        ("a: !!int 1", "t:1:4", "tags"),
        ("!!python/object:os.system a: 1", "t:1:1", "tags"),
        ("a:\n\t- 1", "t:2:1", "not YAML"),
        ("--- 1\n--- 2", "t:2:1", "second document"),
        ("%YAML 1.1\n---\na: 1", "t:1:1", "directives"),
        ("a: .nan", "t:1:4", "finite"),
        ("a: -.inf", "t:1:4", "finite"),
        ("a: 1e999", "t:1:4", "finite"),
        ("a: 99999999999999999999", "t:1:4", "64 bits"),
        ("a: " + "9" * 5000, "t:1:4", "64 bits"),
        ("? [1]\n: 2", "t:1:3", "a key must be a word"),
        ("'': 2", "t:1:1", "must not be empty"),
        ("a: \x07", "t:1:4", "does not allow"),
        ("a: [1, 2", "t:1:9", "not YAML"),
        ("[" * 100, "t:1:34", "nested deeper"),
        ("{a: " * 40 + "1" + "}" * 40, "t:1:133", "nested deeper"),
    ],
)
def test_what_a_spec_never_needs_is_refused_where_it_stands(text, where, what):
    with pytest.raises(SpecError, match=what) as caught:
        parse(text, "t")
    assert caught.value.where == where


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused_with_its_place(text):
    refused = None
    try:
        parse(text, "t")
    except SpecError as error:
        refused = error
    assert refused is None or str(refused.where).startswith("t:")


@given(st.binary(max_size=60))
def test_any_file_parses_or_is_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("yaml") / "t.yaml"
    path.write_bytes(content)
    refused = None
    try:
        read(path)
    except SpecError as error:
        refused = error
    assert refused is None or str(refused.where).startswith("t.yaml:")


def test_files_that_cannot_be_specs_are_refused(tmp_path):
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * (LARGEST_FILE + 1))
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: 1\nb: \xe9\n")
    for path, what in (
        (huge, "larger than"),
        (latin, "latin.yaml:2:1: not UTF-8"),
        (tmp_path, "name a file in it"),
        (tmp_path / "none.yaml", "no such file"),
    ):
        with pytest.raises(SpecError, match=what):
            read(path)


def test_a_byte_order_mark_is_no_content(tmp_path):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read(path).plain() == {"a": 1}


def test_a_text_of_many_values_is_refused_where_they_become_too_many():
    """The list and its entries count."""
    fits = "[" + ",\n".join(["1"] * (MOST_NODES - 1)) + "]"
    assert len(parse(fits, "t").value) == MOST_NODES - 1
    with pytest.raises(SpecError, match="more than 50000 keys and values") as caught:
        parse("[" + ",\n".join(["1"] * 300_000) + "]", "t")
    assert caught.value.where == f"t:{MOST_NODES}:1"


def test_a_text_longer_than_a_file_may_be_is_refused():
    with pytest.raises(SpecError, match="larger than"):
        parse("a: " + "x" * LARGEST_FILE, "t")


PLAIN = {"a": [1, 2.5, None, True, "no"], "b": {"1": "x", "c": []}}


def test_plain_data_are_what_their_text_is():
    text = "{a: [1, 2.5, null, true, no], b: {1: x, c: []}}"
    assert of_plain(PLAIN, "t").plain() == parse(text, "t").plain() == PLAIN


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ([1] * (MOST_LISTED + 1), "more than"),
        ({"a": [[]] * 2 + [1 << 63]}, "64 bits"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_plain_data_are_bounded_too(data, what):
    with pytest.raises(SpecError, match=what):
        of_plain(data, "t")


def test_plain_data_are_not_deep():
    data = 1
    for _ in range(40):
        data = [data]
    with pytest.raises(SpecError, match="nested deeper"):
        of_plain(data, "t")

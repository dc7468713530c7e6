"""What the strict YAML reader accepts, refuses and leaves as text."""

from pathlib import Path

import pytest

from launcher.yaml_document import YamlError, dotted, read, scalar


def faults(text):
    with pytest.raises(YamlError) as caught:
        read(Path("p.yaml"), text)
    return caught.value.faults


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "no",
        "on",
        "off",
        "True",
        "FALSE",
        "y",
        "0o17",
        "017",
        "08000",
        "0x1F",
        "12:30",
        "1_000",
        "Null",
        "4k",
        "2026-01-01",
    ],
)
def test_what_yaml_1_1_would_have_guessed_stays_text(text):
    assert scalar(text) == text
    assert read(Path("p.yaml"), f"key: {text}\n").data == {"key": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("8000", 8000),
        ("1.5", 1.5),
        ("1e5", 100000.0),
        (".5", 0.5),
        ("0.0", 0.0),
    ],
)
def test_plain_scalars_have_the_type_they_look_like(text, value):
    found = read(Path("p.yaml"), f"key: {text}\n").data["key"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["true", "8000", "1e5", "null", "~", "no", ""])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_quoted_is_text(text, quote):
    assert read(Path("p.yaml"), f"key: {quote}{text}{quote}\n").data == {"key": text}


def test_block_text_is_text():
    assert read(Path("p.yaml"), "key: |\n  8000\n").data == {"key": "8000\n"}


def test_every_key_has_its_place():
    document = read(Path("p.yaml"), "a:\n  b: 1\n  c:\n    - x\n    - d: 2\n")
    assert document.places[("a",)] == "p.yaml:1"
    assert document.places[("a", "b")] == "p.yaml:2"
    assert document.places[("a", "c", 1)] == "p.yaml:5"
    assert document.places[("a", "c", 1, "d")] == "p.yaml:5"


def test_all_keys_that_stand_twice_are_named_with_both_lines():
    assert faults("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 4\n") == [
        "p.yaml:5: b.c stands twice, first at p.yaml:3",
        "p.yaml:6: a stands twice, first at p.yaml:1",
    ]


def test_a_key_that_stands_twice_is_found_however_it_is_quoted():
    assert faults("a: 1\n'a': 2\n") == ["p.yaml:2: a stands twice, first at p.yaml:1"]


def test_a_tab_is_explained():
    (fault,) = faults("a:\n\tb: 1\n")
    assert fault.startswith("p.yaml:2: not valid YAML:")
    assert fault.endswith("YAML indents with spaces, not tabs")


@pytest.mark.parametrize("text", ["a: [1, 2\n", "a: 'open\n", "a: b: c\n", "a: *nowhere\n", "a: 1\n--- \nb: 2\n"])
def test_broken_yaml_is_refused_with_its_line(text):
    (fault,) = faults(text)
    assert fault.startswith("p.yaml:")
    assert "not valid YAML" in fault


def test_control_characters_are_refused():
    (fault,) = faults("a: \x01\n")
    assert fault.startswith("p.yaml: not valid YAML")


@pytest.mark.parametrize("tag", ["!secret", "!!python/name:os.system", "!!str", "!!int", "!!set"])
def test_tags_are_refused(tag):
    (fault,) = faults(f"a:\n  b: {tag} 5\n")
    assert fault == "p.yaml:2: YAML tags are not accepted"


@pytest.mark.parametrize("text", ["a: &x {k: 1}\nb:\n  <<: *x\n", "<<: {k: 1}\n"])
def test_merge_keys_are_refused(text):
    (fault,) = faults(text)
    assert "<<" in fault


def test_an_alias_repeats_its_anchor():
    assert read(Path("p.yaml"), "a: &x {k: 1}\nb: *x\n").data == {"a": {"k": 1}, "b": {"k": 1}}


def test_an_alias_inside_its_own_anchor_is_refused():
    assert faults("a: &x\n  b: *x\n")


def test_an_empty_file_is_an_empty_mapping():
    assert read(Path("p.yaml"), "# nothing\n").data == {}


@pytest.mark.parametrize("text", ["- a\n", "text\n", "5\n"])
def test_something_else_than_a_mapping_is_refused(text):
    (fault,) = faults(text)
    assert fault.startswith("p.yaml:1: a profile is a mapping")


def test_a_path_without_keys_means_the_whole_file():
    assert dotted(()) == "(whole file)"
    assert dotted(("roles", "decode", 0)) == "roles.decode.0"

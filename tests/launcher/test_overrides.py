"""``--set key.path=value``."""

import pytest

from launcher import loader
from launcher.errors import ProfileError
from tests.launcher.builders import PAIR, write


def faults(*overrides, reference="demo"):
    with pytest.raises(ProfileError) as caught:
        loader.load(str(reference), overrides)
    return list(caught.value.messages)


def test_several_values_are_set(tmp_path):
    profile = loader.load("demo", ["proxy.port=9000", "roles.decode.replicas=2", "roles.decode.max_num_seqs=null"])
    assert profile.proxy.port == 9000
    assert profile.roles.decode.replicas == 2
    assert profile.roles.decode.max_num_seqs is None
    assert profile.roles.decode.enforce_eager is True


def test_the_last_of_two_wins():
    assert loader.load("demo", ["proxy.port=1", "proxy.port=2"]).proxy.port == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("1.5", 1.5),
        ("true", True),
        ("false", False),
        ("no", "no"),
        ("08", "08"),
        ("a b: c", "a b: c"),
        ("a=b", "a=b"),
        ('"5"', "5"),
        ("'true'", "true"),
        ("[1, a]", [1, "a"]),
        ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
    ],
)
def test_values_have_yaml_types(text, value):
    profile = loader.load("demo", [f"roles.decode.engine_args.x={text}"])
    assert profile.roles.decode.engine_args == {"x": value}
    assert type(profile.roles.decode.engine_args["x"]) is type(value)


def test_a_whole_part_can_be_set():
    profile = loader.load("demo", ["speculation={method: ngram, num_speculative_tokens: 3}"])
    assert profile.speculation.num_speculative_tokens == 3


def test_an_unknown_key_suggests_the_nearest_and_names_the_option():
    assert faults("proxy.prot=9000") == ["--set proxy.prot=9000: proxy.prot: unknown key, did you mean port?"]


def test_a_wrong_type_names_the_option():
    (fault,) = faults('proxy.port="9000"')
    assert fault.startswith('--set proxy.port="9000": proxy.port: write a whole number, unquoted')


def test_faults_of_several_options_come_together():
    assert len(faults("proxy.port=x", "roles.decode.replicas=0")) == 2


@pytest.mark.parametrize("override", ["proxy.port", "=5", ".port=5", "proxy.=5", "proxy..port=5", ""])
def test_another_form_is_refused_with_an_example(override):
    assert faults(override) == [f"--set {override}: write it as key.path=value, e.g. proxy.port=8001"]


@pytest.mark.parametrize("value", ["[1, 2", "{a: 1", '"open', '"a" b'])
def test_broken_yaml_is_refused(value):
    (fault,) = faults(f"roles.decode.engine_args.x={value}")
    assert fault.startswith(f"--set roles.decode.engine_args.x={value}: not valid YAML: ")


@pytest.mark.parametrize("text", ["null", ""])
def test_nothing_takes_a_value_away(text):
    profile = loader.load("demo", ["roles.decode.engine_args.x=1", f"roles.decode.engine_args.x={text}"])
    assert profile.roles.decode.engine_args == {}


def test_faults_of_the_file_keep_their_line(tmp_path):
    file = write(tmp_path, PAIR + "    proxy: {port: 0}\n")
    assert [fault.split(": ")[0] for fault in faults("proxy.host=x", reference=file)] == [f"{file}:7"]


def test_a_value_is_not_a_mapping(tmp_path):
    (fault,) = faults("proxy.port.number=5")
    assert fault.startswith("--set proxy.port.number=5: ") or ": proxy.port: " in fault

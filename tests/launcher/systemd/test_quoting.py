"""Whatever a command line or an environment says, systemd reads exactly that."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from launcher.errors import PlanError
from launcher.systemd import quoting
from tests.launcher.systemd import reading

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))) | st.text("%$\"'\\;#: \t\n\r=-x{}é")


@given(st.lists(TEXTS, max_size=5))
@example(["$HOME ${X} $$", "%h %%", 'a "b"', "it's", "both \" and '", "\\", "\\n", ";", "", " ", "\n", "#x", "--a=b c"])
@example(["\udcff", "\x01\x7f\xa0\u2028", "--;", "-- a", "\\\n"])
def test_a_command_line_is_read_as_it_was(arguments: list[str]):
    assert reading.command(joined(quoting.command(["/bin/echo", *arguments]))) == ["/bin/echo", *arguments]


def joined(written: str) -> str:
    """As the setting of a unit."""
    ((_, value),) = reading.sections(f"[Service]\nExecStart={written}\n")["Service"]
    return value


@given(TEXTS)
@example("a=b\n%c$D")
def test_a_variable_is_read_as_it_was(value: str):
    written = f"[Service]\nEnvironment={quoting.assignment('NAME', value)}\n"
    assert written.count("\n") == 2
    assert reading.environment(written) == {"NAME": value}


def test_a_program_may_have_blanks_and_percent_signs_in_its_path():
    assert reading.command(quoting.command(["/opt/a b%$/python", "x"])) == ["/opt/a b%$/python", "x"]


@pytest.mark.parametrize("program", ["python", "", "/opt/a\nb"])
def test_a_program_that_systemd_cannot_start_is_refused(program: str):
    with pytest.raises(PlanError, match="systemd cannot start"):
        quoting.command([program])


@pytest.mark.parametrize("text", ["/a\nb", "/a ", "/a\\"])
def test_a_path_that_systemd_cannot_take_is_refused(text: str):
    with pytest.raises(PlanError, match="systemd cannot take"):
        quoting.rest_of_line(text)


def test_a_zero_byte_is_refused():
    with pytest.raises(PlanError, match="zero byte"):
        quoting.word("a\0b")


def test_what_needs_no_quotes_has_none_and_json_has_single_ones():
    assert quoting.word("--host=127.0.0.1") == "--host=127.0.0.1"
    assert quoting.word('{"a": 1}') == "'{\"a\": 1}'"


def test_names_of_units_are_escaped_as_systemd_escape_does():
    assert quoting.unit_name("duet", "my é%", suffix="target") == "duet-my\\x20\\xc3\\xa9\\x25.target"
    with pytest.raises(PlanError, match="too long"):
        quoting.unit_name("é" * 100, suffix="service")


def test_a_description_is_one_line():
    assert quoting.description("a\nb  100%\\") == "a b 100%%"

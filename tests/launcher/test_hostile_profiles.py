"""Whatever a profile or an option holds ends in one line for each fault, with the key, and without a secret."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from launcher import loader, preflight
from launcher.cli import app
from launcher.errors import PlanError, ProfileError
from tests.launcher.builders import MACHINE, case, model_folder, plan, write

PROFILE = "description: x\ndevice: cuda\nmodel: {id: a/b}\nroles:\n  aggregated: {}\n"
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
DRAFT = "speculation={method: draft_model, num_speculative_tokens: 3, draft: %s}"


def faults(reference, *overrides):
    with pytest.raises(ProfileError) as error:
        loader.load(str(reference), overrides)
    return list(error.value.messages)


@pytest.mark.parametrize(
    ("draft", "fault"),
    [
        ("{model: x, modell: y}", "speculation.draft.modell: unknown key, did you mean model?"),
        ("{}", "speculation.draft.model: is missing"),
        ("5", "speculation.draft: write text, in quotes if it looks like a number or a switch, not 5"),
        ("{model: 5}", "speculation.draft.model: write text, in quotes if it looks like a number or a switch, not 5"),
        ("{model: x, max_model_len: 0}", "speculation.draft.max_model_len: Input should be greater than or equal to 1"),
    ],
)
def test_of_a_key_with_two_forms_the_one_that_was_meant_is_judged(draft, fault):
    (found,) = faults("demo", DRAFT % draft)
    assert f": {fault}" in found


def test_a_list_of_two_forms_names_the_item():
    assert all(
        ": roles.decode.devices.1: " in each for each in faults("api-throughput", "roles.decode.devices=[0, 1.5]")
    )


@pytest.mark.parametrize(
    "override",
    [
        f"secrets.HF_TOKEN={TOKEN}",
        f"secrets={{HF_TOKEN: {TOKEN}}}",
        f"env={{HF_TOKEN: [{TOKEN}]}}",
        f"env.HF_TOKEN=[{TOKEN}]",
        f"env.HF_TOKEN={{{TOKEN}",
        f"roles.decode.env={TOKEN}",
    ],
)
def test_a_secret_in_the_wrong_place_is_in_no_message(override):
    assert TOKEN not in "".join(faults("demo", override))


def test_a_secret_in_a_file_is_in_no_message(tmp_path):
    file = write(tmp_path, f"{PROFILE}secrets: {{A: {TOKEN}}}\nenv: {{1A: {TOKEN}}}\n")
    assert TOKEN not in (said := "".join(faults(file)))
    assert "secrets.A: Input should be an object: write {env: NAME} or {file: PATH}" in said
    assert "env.1A: the name of a variable has letters" in said


def test_where_an_option_set_a_variable_its_text_is_not_told():
    resolved = loader.resolve("demo", [f"env.HF_TOKEN={TOKEN}"])
    assert resolved.document.place_of(("env", "HF_TOKEN")) == "--set env.HF_TOKEN"


@pytest.mark.parametrize("escape", ["\\0", "\\ud800"])
def test_a_text_that_no_program_can_take_is_refused_with_its_key(tmp_path, escape):
    file = write(tmp_path, f'{PROFILE}env: {{A: "a{escape}b"}}\n')
    assert faults(file) == [f"{file}:6: env.A: a text with a zero or half a character cannot be passed to a program"]


def test_characters_of_every_language_can_be_passed(tmp_path):
    file = write(tmp_path, f'{PROFILE}env: {{A: "\\U0001F600 größer \\\\u0000"}}\n')
    assert loader.load(str(file)).env["A"] == "\U0001f600 größer \\u0000"


def test_a_message_is_one_line_without_codes_for_the_terminal(tmp_path):
    file = write(tmp_path, f'{PROFILE}"\\e[31mred\\n": 1\n')
    (fault,) = faults(file)
    assert fault.isprintable()


def test_few_aliases_that_mean_many_values_are_refused_at_once(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    (fault,) = faults(write(tmp_path, "\n".join(lines)))
    assert "it holds more than 5000 values, aliases included" in fault


@pytest.mark.parametrize("key", ["[a, b]", "{a: b}"])
def test_a_key_is_a_text(tmp_path, key):
    file = write(tmp_path, f"{PROFILE}? {key}\n: 1\n")
    assert faults(file) == [f"{file}:6: (whole file): a key is a text, here it is a list or a mapping"]


def test_what_is_nested_deeply_is_refused_wherever_it_stands(tmp_path):
    deep = write(tmp_path, f"{PROFILE}engine_args: {{max-logprobs: {'[' * 300}{']' * 300}}}\n")
    assert "it is nested too deeply" in faults(deep)[0]
    assert faults("demo", ".".join("a" * 3000) + "=1")


@pytest.mark.parametrize(
    "override",
    ["model.served_name=--help", "model.aliases=[--port]", "model.tokenizer=-x", "roles.decode.attention_backend=--x"],
)
def test_a_name_that_would_be_an_option_is_refused(override):
    assert "it must not begin with a dash" in faults("demo", override)[0]


@pytest.mark.parametrize("command", ["[]", "['']"])
def test_an_engine_is_started_by_some_program(command):
    assert "engine_command" in faults("demo", f"engine_command={command}")[0]


@pytest.mark.parametrize("name", ["port=9000", "a b", "x=y"])
def test_an_option_cannot_hide_another(name):
    with pytest.raises(PlanError, match="an option's name has letters, digits, dashes and dots"):
        plan("demo", f'engine_args={{"{name}": true}}')


def test_an_option_sets_one_value():
    (fault,) = faults("demo", "proxy={port: 1}\ndevice: cuda")
    assert "it holds more than one value" in fault


def test_a_description_that_is_nested_without_end_describes_no_model(tmp_path):
    folder = model_folder(tmp_path / "model")
    (folder / "config.json").write_text("[" * 100_000)
    file = write(tmp_path, f"description: x\ndevice: cuda\nmodel: {{path: {folder}}}\nroles: {{aggregated: {{}}}}\n")
    found = [finding.rule for finding in preflight.judge(case(file), {preflight.Layer.STATIC})]
    assert "model/files-there" in found


def test_a_cache_of_somebody_who_is_not_there_holds_nothing():
    judged = case("interactive", environ={"HF_HUB_CACHE": "~nobody-of-this-name/hub"})
    assert not [*preflight.judge(judged, {preflight.Layer.STATIC})]


def test_a_terminal_without_a_character_shows_its_number():
    command = [sys.executable, "-m", "launcher", "show", "demo", "--set", "description=ü"]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert (done.returncode, "\\xfc" in done.stdout) == (0, True)


@pytest.mark.parametrize("name", ["api-key", "hf_token"])
def test_an_option_that_is_a_secret_is_in_no_place(name):
    resolved = loader.resolve("demo", [f"engine_args.{name}={TOKEN}"])
    assert resolved.document.place_of(("engine_args", name)) == f"--set engine_args.{name}"


def test_an_instance_has_no_more_devices_than_a_plan_can_name():
    wide = "{tensor_parallel: 1000, pipeline_parallel: 1000, data_parallel: 1000}"
    (fault,) = faults("api-throughput", f"roles.prefill={wide}")
    assert "an instance of 1000000000 devices" in fault


@pytest.mark.parametrize("second", ["{uuid}", "0"])
def test_one_gpu_under_two_names_is_found(second):
    first = MACHINE.gpus[0]
    given = f'["{second.format(uuid=first.uuid)}", {first.index}]'
    judged = case("api-throughput", f"roles.prefill.devices={given}")
    assert "devices/twice" in {each.rule for each in preflight.judge(judged, {preflight.Layer.STATIC})}


@pytest.mark.parametrize(
    "options",
    [
        ("--on", "2x24"),
        ("--on", "2x0"),
        ("--bandwidth", "0"),
        ("--prompt-tokens", "9" * 400),
    ],
)
def test_sizes_that_mean_nothing_are_wrong_command_lines(options):
    assert CliRunner().invoke(app, ["size", "interactive", *options]).exit_code == 2


def test_a_width_that_the_heads_cannot_be_shared_out_to_is_not_said_to_fit():
    widths = [part for role in ("prefill", "decode") for part in ("--set", f"roles.{role}.tensor_parallel=3")]
    told = CliRunner().invoke(app, ["size", "api-throughput", *widths]).output
    assert "64 attention heads cannot be shared out to 3 devices: the engine refuses it" in told
    assert " fits" not in told

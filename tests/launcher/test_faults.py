"""Every fault of a profile is told at once, with file, line and key."""

import pytest

from launcher import loader
from launcher.errors import ProfileError
from tests.launcher.builders import PAIR, write


def faults(reference, *overrides):
    with pytest.raises(ProfileError) as caught:
        loader.load(str(reference), overrides)
    assert caught.value.exit_code == 3
    assert str(caught.value) == "\n".join(caught.value.messages)
    return list(caught.value.messages)


def test_all_faults_come_at_once_in_the_order_of_their_lines(tmp_path):
    file = write(
        tmp_path,
        """\
        description: faulty
        devise: cpu
        device: gpu
        model: {path: /m, dtype: int3}
        roles:
          prefill: {replicas: 0}
          decode:
            replica: 2
            max_num_seqs: "16"
        proxy:
          port: 70000
          timeouts: {conect: 5}
        """,
    )
    assert [fault.split(": ")[:2] for fault in faults(file)] == [
        [f"{file}:2", "devise"],
        [f"{file}:3", "device"],
        [f"{file}:4", "model.dtype"],
        [f"{file}:6", "roles.prefill.replicas"],
        [f"{file}:8", "roles.decode.replica"],
        [f"{file}:9", "roles.decode.max_num_seqs"],
        [f"{file}:11", "proxy.port"],
        [f"{file}:12", "proxy.timeouts.conect"],
    ]


@pytest.mark.parametrize(
    ("extra", "key", "near"),
    [
        ("devise: cpu", "devise", "device"),
        ("proxi: {}", "proxi", "proxy"),
        ("kv_transfer: {leese: 30}", "kv_transfer.leese", "lease"),
        ("proxy: {timeouts: {decode: {idel: 5}}}", "proxy.timeouts.decode.idel", "idle"),
        ("quantization: {wieghts: mxfp8}", "quantization.wieghts", "weights"),
        (
            "speculation: {method: ngram, num_speculativ_tokens: 3}",
            "speculation.num_speculativ_tokens",
            "num_speculative_tokens",
        ),
    ],
)
def test_an_unknown_key_suggests_the_nearest(tmp_path, extra, key, near):
    file = write(tmp_path, PAIR + f"    {extra}\n")
    assert f"{file}:7: {key}: unknown key, did you mean {near}?" in faults(file)


def test_an_unknown_key_in_a_role_suggests_the_nearest(tmp_path):
    file = write(tmp_path, PAIR.replace("decode: {", "decode: {replica: 2, "))
    assert faults(file) == [f"{file}:6: roles.decode.replica: unknown key, did you mean replicas?"]


def test_an_unknown_key_that_resembles_nothing_is_just_unknown(tmp_path):
    file = write(tmp_path, PAIR + "    zzz: 1\n")
    assert faults(file) == [f"{file}:7: zzz: unknown key"]


def test_a_missing_key_is_told_at_the_place_of_its_parent(tmp_path):
    file = write(tmp_path, PAIR + "    speculation:\n      num_speculative_tokens: 3\n")
    assert faults(file) == [f"{file}:7: speculation.method: is missing"]


def test_an_empty_file_misses_all_that_is_needed(tmp_path):
    file = write(tmp_path, "")
    assert faults(file) == [f"{file}: {key}: is missing" for key in ("description", "device", "model", "roles")]


def test_a_list_at_the_top_is_refused(tmp_path):
    file = write(tmp_path, "- description: x\n")
    assert faults(file) == [f"{file}:1: a profile is a mapping of keys, this file holds something else"]


def test_keys_that_stand_twice_are_faults(tmp_path):
    file = write(tmp_path, "device: cpu\ndevice: cuda\n")
    assert faults(file) == [f"{file}:2: device stands twice, first at {file}:1"]


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", '"true"', '"false"', "1", "0"])
def test_a_switch_takes_only_true_and_false(tmp_path, word):
    file = write(tmp_path, PAIR.replace("decode: {", f"decode: {{enforce_eager: {word}, "))
    (fault,) = faults(file)
    assert fault.startswith(f"{file}:6: roles.decode.enforce_eager: ")
    assert fault.partition(", not ")[0].endswith("write true or false, unquoted")


@pytest.mark.parametrize("number", ["08000", '"8000"', "8000.5", "8e3", "0x1F40", "1:30", "8_000", "true", "[8000]"])
def test_a_port_takes_only_a_whole_number(tmp_path, number):
    file = write(tmp_path, PAIR + f"    proxy: {{port: {number}}}\n")
    (fault,) = faults(file)
    assert fault.startswith(f"{file}:7: proxy.port: ")


@pytest.mark.parametrize("value", ["5", "true", "1.5"])
def test_a_name_takes_only_text(tmp_path, value):
    file = write(tmp_path, PAIR.replace("path: /models/tiny", f"path: /models/tiny, served_name: {value}"))
    assert faults(file) == [
        f"{file}:3: model.served_name: write text, in quotes if it looks like a number or a switch, not {value}"
    ]


def test_words_that_look_like_something_else_stay_words(tmp_path):
    file = write(tmp_path, PAIR.replace("path: /models/tiny", "id: a/b, revision: 0e1x, served_name: no"))
    model = loader.load(str(file)).model
    assert (model.revision, model.served_name) == ("0e1x", "no")


def test_an_environment_variable_is_text(tmp_path):
    file = write(tmp_path, PAIR.replace("decode: {", "decode: {env: {A: 1, B: '1'}, "))
    assert faults(file) == [
        f"{file}:6: roles.decode.env.A: write text, in quotes if it looks like a number or a switch"
    ]


def test_a_folder_is_no_profile(tmp_path):
    assert faults(tmp_path) == [f"{tmp_path} is a folder, not a profile"]


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert faults(tmp_path / "gone.yaml") == [f"there is no profile file {tmp_path / 'gone.yaml'}"]


def test_a_file_that_is_not_utf_8_is_named(tmp_path):
    file = tmp_path / "latin.yaml"
    file.write_bytes("description: größer\n".encode("latin-1"))
    (fault,) = faults(file)
    assert fault.startswith(f"cannot read {file}: ")


def test_an_unknown_profile_suggests_the_nearest():
    (fault,) = faults("dmeo")
    assert "unknown profile dmeo; did you mean demo?" in fault
    assert "Shipped are: api-throughput, batch-cost, demo, interactive, single-gpu" in fault


def test_an_unknown_profile_that_resembles_nothing_lists_what_ships():
    (fault,) = faults("zzz")
    assert "did you mean" not in fault
    assert "Shipped are:" in fault

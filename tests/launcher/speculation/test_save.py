"""What was tuned is written into the user's profile: what it means changes by that only, and so does its text."""

import json
import stat

import pytest

from launcher import loader
from launcher.errors import MeasureError
from launcher.speculation.evidence import Evidence
from launcher.speculation.save import difference, draft, save
from proxy.topology import Role
from tests.launcher.builders import PAIR, write

TUNED = {"method": "ngram", "num_speculative_tokens": 4, "schedule": [[1, 4, 4], [5, 16, 0]]}
EVIDENCE = Evidence("mine", (), (), ((1, 4, 4), (5, 16, 0)), "ngram", 4, "Speculate.")
COMMENTED = """\
# Ours: do not touch without asking Ann.
description: a pair   # of two
device: cpu
model: {path: /models/tiny}

speculation:            # tried in spring
  method: ngram
  num_speculative_tokens: 2   # by feeling
  prompt_lookup_max: 4

roles:
  prefill: {kv_cache_memory: 256MiB}
  decode:
    kv_cache_memory: 256MiB   # enough
    env: {ON: "yes"}
"""


def saved(folder, text, what=TUNED, name="mine.yaml"):
    file = write(folder, text, name)
    drafted = draft(str(file), what, None)
    save(drafted, EVIDENCE, {"seed": 0})
    return file


def test_only_the_lines_of_speculation_change_and_comments_stay(tmp_path):
    file = saved(tmp_path, COMMENTED)
    lines = file.read_text().splitlines()
    kept = [line for line in COMMENTED.splitlines() if "lookup" not in line and "num_speculative" not in line]
    assert [line for line in lines if line in kept] == kept
    assert [line for line in lines if line not in kept] == [
        "  num_speculative_tokens: 4   # by feeling",
        "  schedule: [[1, 4, 4], [5, 16, 0]]",
    ]


def test_the_profile_then_means_what_was_tuned(tmp_path):
    found = loader.load(str(saved(tmp_path, PAIR))).speculation
    assert found is not None
    assert (found.num_speculative_tokens, found.schedule) == (4, [(1, 4, 4), (5, 16, 0)])


def test_do_not_speculate_is_written_as_null_and_as_nothing_where_there_was_none(tmp_path):
    file = saved(tmp_path, COMMENTED, None)
    assert loader.load(str(file)).speculation is None
    assert "speculation:" in file.read_text()
    plain = write(tmp_path, PAIR, "plain.yaml")
    assert draft(str(plain), None, None).text == plain.read_text()


def test_what_a_base_says_of_another_method_does_not_reach_through(tmp_path):
    base = PAIR + "    speculation: {method: draft_model, draft: org/small, num_speculative_tokens: 3}\n"
    write(tmp_path, base, "base.yaml")
    file = saved(tmp_path, "    description: mine\n    extends: base.yaml\n")
    found = loader.load(str(file)).speculation
    assert found is not None
    assert (found.method, found.draft) == ("ngram", None)
    none = saved(tmp_path, "    description: mine\n    extends: base.yaml\n", None, "none.yaml")
    assert loader.load(str(none)).speculation is None


def test_speculation_of_one_role_gives_way_to_what_was_measured(tmp_path):
    text = PAIR.replace("decode: {", "decode: {speculation: {method: ngram, num_speculative_tokens: 7}, ")
    found = loader.load(str(saved(tmp_path, text)))
    assert found.roles.decode is not None
    assert found.roles.decode.speculation is None
    assert found.speculation is not None
    assert found.speculation.num_speculative_tokens == 4
    write(tmp_path, text, "base.yaml")
    file = saved(tmp_path, "    description: mine\n    extends: base.yaml\n", name="over.yaml")
    over = loader.load(str(file)).speculation_of(Role.DECODE)
    assert over is not None
    assert over.num_speculative_tokens == 4


def test_a_copy_of_each_former_text_and_the_evidence_lie_beside_it(tmp_path):
    file = saved(tmp_path, COMMENTED)
    assert (tmp_path / "mine.yaml.before-tuning").read_text() == COMMENTED
    save(draft(str(file), None, None), EVIDENCE, {})
    assert (tmp_path / "mine.yaml.before-tuning-2").exists()
    assert json.loads((tmp_path / "mine.speculation.json").read_text())["evidence"]["k"] == 4
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "mine.speculation.json",
        "mine.yaml",
        "mine.yaml.before-tuning",
        "mine.yaml.before-tuning-2",
    ]


def test_a_shipped_profile_is_extended_by_a_new_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drafted = draft("demo", TUNED, None)
    save(drafted, EVIDENCE, {})
    found = loader.load("demo-tuned.yaml")
    assert found.speculation is not None
    assert found.model == loader.load("demo").model
    with pytest.raises(MeasureError, match="is there already"):
        draft("demo", TUNED, None)


def test_of_a_shipped_profile_with_a_draft_nothing_of_the_draft_is_left(tmp_path):
    drafted = draft("interactive", TUNED, tmp_path / "mine.yaml")
    save(drafted, EVIDENCE, {})
    found = loader.load(str(tmp_path / "mine.yaml")).speculation
    assert found is not None
    assert found.draft is None


def test_permissions_stay_and_nothing_is_written_before_it_is_saved(tmp_path):
    file = write(tmp_path, COMMENTED)
    file.chmod(0o600)
    drafted = draft(str(file), TUNED, None)
    assert file.read_text() == COMMENTED
    assert any(line.startswith("+  schedule") for line in difference(drafted))
    save(drafted, EVIDENCE, {})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", sorted(loader.shipped_profiles()))
def test_the_text_of_every_shipped_profile_changes_by_speculation_only(name, tmp_path):
    text = loader.shipped_profiles()[name].read_text()
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    drafted = draft(str(file), TUNED, None)
    removed = [line[1:] for line in difference(drafted)[2:] if line.startswith("-")]
    inside = text.partition("speculation:\n")[2].partition("roles:")[0] if "speculation:" in text else ""
    assert all(line in inside for line in removed), removed

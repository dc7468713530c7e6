"""The configuration file."""

import json

import pytest

from proxy.config import ConfigError, ProxyConfig, dump, load
from proxy.settings import FailurePolicy, Settings
from proxy.topology import ConnectorKind, Instance, Role, Topology

CONFIG = ProxyConfig(
    Topology(
        (Instance("prefill-0", Role.PREFILL, "http://127.0.0.1:1", fingerprint={"block size": "16"}),),
        ConnectorKind.NIXL_PULL,
    ),
    Settings(failure_policy=FailurePolicy.FAIL),
)
VALID = {"name": "decode-0", "role": "decode", "url": "http://127.0.0.1:1"}


def test_what_is_dumped_is_loaded(tmp_path):
    file = tmp_path / "proxy.json"
    file.write_text(dump(CONFIG))
    assert load(file) == CONFIG


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"version": 1}, "version"),
        ({"surprise": 1}, "surprise"),
        ({"settings": {"port": "many"}}, "settings.port"),
        ({"settings": {"timeouts": {"total": 3}}}, "settings.timeouts.total"),
        ({"topology": {"instances": [VALID | {"fingerprint": {"block size": 16}}]}}, "fingerprint.block size"),
        ({"topology": {"instances": [{"name": "x", "role": "boss", "url": "u"}]}}, "topology.instances.0.role"),
    ],
)
def test_a_wrong_key_is_refused_by_its_name(tmp_path, change, named):
    file = tmp_path / "proxy.json"
    file.write_text(json.dumps(json.loads(dump(CONFIG)) | change))
    with pytest.raises(ConfigError, match=named):
        load(file)


def test_a_file_that_is_missing_or_no_json_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.json"):
        load(tmp_path / "none.json")
    file = tmp_path / "bad.json"
    file.write_text("{")
    with pytest.raises(ConfigError, match=r"bad\.json"):
        load(file)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 65, "ä"])
def test_a_name_that_cannot_be_sent_in_a_header_is_refused(tmp_path, name):
    file = tmp_path / "proxy.json"
    file.write_text(dump(ProxyConfig(Topology((Instance(name, Role.AGGREGATED, "http://127.0.0.1:1"),)))))
    with pytest.raises(ConfigError, match="a name is 1 to 64 of"):
        load(file)

"""A deployment whose proxy speaks HTTPS, asks for keys and has several workers."""

import json
import ssl
import urllib.request
from pathlib import Path

import pytest
import trustme
import yaml

from proxy.keys import new_key
from tests.launcher.local.conftest import Launch


@pytest.mark.parametrize("with_admin", [True, False])
def test_it_becomes_ready_and_healthy_and_answers_who_has_a_key(
    launch: Launch, command, profile: Path, folder: Path, proxy_port: int, unused_tcp_port: int, with_admin: bool
):
    authority, (key, digest) = trustme.CA(), new_key()
    made = authority.issue_cert("localhost")  # not the name by which the launcher asks
    made.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    made.private_key_pem.write_to_path(folder / "key.pem")
    content = yaml.safe_load(profile.read_text())
    content["proxy"] |= {
        "tls": {"certificate": str(folder / "certificate.pem"), "key": str(folder / "key.pem")},
        "client_keys": [{"name": "alice", "sha256": digest}],
        "workers": 2,
        **({"admin": {"port": unused_tcp_port}} if with_admin else {}),
    }
    profile.write_text(yaml.safe_dump(content))

    running = launch()
    running.wait_ready()

    assert json.loads(command("status", "--output", "json").stdout)["healthy"]
    assert f"Serving at https://127.0.0.1:{proxy_port}" in running.output
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    request = urllib.request.Request(f"https://localhost:{proxy_port}/v1/models", headers={"x-api-key": key})
    with urllib.request.urlopen(request, timeout=20, context=trusting) as response:
        assert json.load(response)["data"][0]["id"] == "fake"

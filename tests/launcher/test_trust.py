"""A proxy with a private authority's certificate, and with keys, is asked like any other."""

import asyncio

import pytest
import trustme

from launcher.baseline import record
from launcher.doctor.look import look_at_proxy
from launcher.errors import BaselineError
from proxy.config import ProxyConfig
from proxy.keys import new_key
from proxy.settings import ClientKey, Settings, Tls
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import topology_of
from tests.proxy.program import running

KEY, DIGEST = new_key()
HEADER = {"authorization": f"Bearer {KEY}"}


@pytest.fixture
async def secured(tmp_path):
    """A proxy's address; ``ca.pem`` is its authority's certificate."""
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = Tls(str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem"))
    settings = Settings(tls=tls, client_keys=(ClientKey("alice", DIGEST),))
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(
            ProxyConfig(topology_of([prefill, decode]), settings), tmp_path, trusted=str(tmp_path / "ca.pem")
        ) as program,
    ):
        yield str(program.client.base_url).rstrip("/")


async def test_the_file_that_names_the_authority_is_asked_for_and_used(secured, tmp_path, monkeypatch):
    with pytest.raises(BaselineError, match="SSL_CERT_FILE"):
        await asyncio.to_thread(record, secured, ["x"], 2, None, HEADER)
    assert "SSL_CERT_FILE" in (await look_at_proxy(secured, 0, {})).not_seen[0]

    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    recorded = await asyncio.to_thread(record, f"{secured}/v1", ["x"], 2, None, HEADER)
    assert len(recorded.answers) == 1
    assert (await look_at_proxy(secured, 0, HEADER)).not_seen == ()


async def test_a_key_that_is_missing_is_asked_for(secured, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with pytest.raises(BaselineError, match="--key"):
        await asyncio.to_thread(record, secured, ["x"], 2, None)
    assert "--key" in (await look_at_proxy(secured, 0, {})).not_seen[0]

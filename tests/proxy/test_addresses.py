"""HTTPS for clients, and an address of their own for those who operate the proxy."""

import signal
import socket

import pytest
import trustme

from proxy.cli import main
from proxy.config import ProxyConfig, dump
from proxy.settings import Admin, Settings, Tls
from tests.fakes.engine import FakeEngine
from tests.proxy.conftest import topology_of
from tests.proxy.program import running


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def files(authority, tmp_path) -> Tls:
    """A certificate for 127.0.0.1 and its key."""
    made = authority.issue_cert("127.0.0.1")
    made.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return Tls(str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem"))


async def test_clients_speak_https_and_operators_have_an_address_of_their_own(files, tmp_path, unused_tcp_port):
    settings = Settings(tls=files, admin=Admin(unused_tcp_port))
    trusted = str(tmp_path / "ca.pem")
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(ProxyConfig(topology_of([prefill, decode]), settings), tmp_path, trusted=trusted) as program,
    ):
        assert program.client.base_url.scheme == "https"
        answer = await program.client.post("/v1/completions", json={"model": "fake", "prompt": "x"})
        assert answer.headers["x-duet-path"] == "pd"
        assert (await program.client.get("/health")).status_code == 200
        for path in ("/ready", "/metrics"):
            hidden = await program.client.get(path)
            assert (hidden.status_code, hidden.json()["error"]["type"]) == (404, "NotFoundError")

        admin = f"http://127.0.0.1:{unused_tcp_port}"
        assert (await program.client.get(f"{admin}/health")).status_code == 200
        assert (await program.client.get(f"{admin}/ready")).json()["modes"]["pd"]
        assert "duet_requests_total" in (await program.client.get(f"{admin}/metrics")).text
        for path in ("/v1/completions", "/sleep"):
            assert (await program.client.post(f"{admin}{path}", json={})).status_code == 404
        program.signal(signal.SIGTERM)
        assert await program.end() == 0
    assert "Traceback" not in program.log


def failed(settings: Settings, folder, capsys) -> tuple[int, str]:
    """Exit code and message of a proxy that cannot start."""
    file = folder / "proxy.json"
    file.write_text(dump(ProxyConfig(topology_of([]), settings)))
    code = main(["--config", str(file), "--port", "0"])
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return code, message


def test_a_missing_certificate_or_a_wrong_one_is_one_message_and_exit_code_3(files, tmp_path, capsys):
    code, message = failed(Settings(tls=Tls("/none.pem", files.key)), tmp_path, capsys)
    assert (code, "proxy.tls.certificate: cannot read /none.pem" in message) == (3, True)
    code, message = failed(Settings(tls=Tls(files.certificate, files.certificate)), tmp_path, capsys)
    assert (code, "are not a certificate chain and its key" in message) == (3, True)


def test_an_operators_address_in_use_is_one_message_and_exit_code_4(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, message = failed(Settings(admin=Admin(port)), tmp_path, capsys)
    assert (code, f"cannot listen on 127.0.0.1:{port}" in message) == (4, True)

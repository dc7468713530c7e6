"""HTTPS with ordinary verification, and IPv6."""

import ssl

import pytest
import trustme

from proxy.wire.errors import Broken, Unreachable
from tests.proxy.wire.conftest import answering, chunked, ok, rest_of


@pytest.fixture(scope="module")
def authority():
    """A certificate authority of this test."""
    return trustme.CA()


@pytest.fixture
def tls(authority, tmp_path, monkeypatch) -> ssl.SSLContext:
    """What a server of ``localhost`` needs; the authority is trusted by this process."""
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    return context


async def test_requests_and_answers_large_and_small_over_tls(listen, ask, tls):
    large = b"x" * 3_000_000
    server = await listen(answering(ok(), ok(large)), tls=tls)
    assert await rest_of(await ask(server.url)) == b"fine"
    assert await rest_of(await ask(server.url, body=large)) == large
    assert len(server.peers) == 1


async def test_an_answer_cut_off_within_tls_is_broken(listen, ask, tls):
    async def script(peer):
        await peer.request()
        await peer.say(chunked(b"half"))

    with pytest.raises(Broken):
        await rest_of(await ask((await listen(script, tls=tls)).url))


async def test_closing_an_unfinished_answer_closes_the_connection(listen, ask, tls):
    async def script(peer):
        await peer.request()
        await peer.say(chunked(b"first"))
        await peer.until_gone()

    server = await listen(script, tls=tls)
    answer = await ask(server.url)
    assert await answer.chunk() == b"first"
    answer.close()
    await server.peers[0].gone.wait()


async def test_a_certificate_of_a_stranger_is_refused(listen, ask, tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
    server = await listen(answering(ok()), tls=tls)
    with pytest.raises(Unreachable):
        await ask(server.url)


async def test_a_certificate_for_another_name_is_refused(listen, ask, tls):
    server = await listen(answering(ok()), tls=tls)
    with pytest.raises(Unreachable):
        await ask(server.url.replace("localhost", "127.0.0.1"))


async def test_a_server_without_tls_is_unreachable_by_it(listen, ask):
    async def script(peer):
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    server = await listen(script)
    with pytest.raises(Unreachable):
        await ask(server.url.replace("http://", "https://"))


async def test_ipv6(listen, ask):
    heads = []

    async def script(peer):
        heads.append(await peer.request())
        await peer.say(ok())

    try:
        server = await listen(script, host="::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert await rest_of(await ask(server.url)) == b"fine"
    assert b"host: [::1]:" in heads[0]

"""What of a client's headers either engine sees, byte by byte from a real socket."""

import asyncio
import json

import pytest

TEXT = {"model": "fake", "prompt": "one two three", "max_tokens": 5}
BODY = json.dumps(TEXT).encode()
PASS = {
    "authorization": "Bearer hidden",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "x-tenant": "a",
    "content-type": "application/json; charset=utf-8",
    "user-agent": "somebody",
    "cookie": "a=b",
}
STAY = {
    "connection": "close, x-private",
    "x-private": "1",
    "te": "trailers",
    "keep-alive": "timeout=5",
    "upgrade": "websocket",
    "expect": "100-continue",
    "proxy-authorization": "Basic aGlkZGVu",
}


async def ask(duet, headers: dict[str, str]) -> bytes:
    """All bytes of an answer, on a connection that is closed after it."""
    host, port = duet.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, port)
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(["POST /v1/completions HTTP/1.1", *lines, f"Content-Length: {len(BODY)}", "", ""])
    writer.write(head.encode("latin-1") + BODY)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


async def test_those_of_the_request_pass_and_those_of_the_connection_stay(duet):
    answer = await ask(duet, {"Host": "public.example", "Accept-Encoding": "gzip", **PASS, **STAY})
    assert b" 200 OK\r\n" in answer
    for engine in (duet.prefill, duet.decode):
        (seen,) = engine.seen
        assert {name: seen.header(name) for name in PASS} == PASS
        assert {name: seen.header(name) for name in STAY} == dict.fromkeys(STAY)
        assert seen.header("host") == engine.url.removeprefix("http://")
        assert seen.header("accept-encoding") == "identity"
        names = [name for name, _ in seen.headers]
        assert [names.count(name) for name in ("content-length", "host", "x-request-id")] == [1, 1, 1]
        assert seen.header("content-length") == str(len(seen.body))


@pytest.mark.parametrize("given", ["i" * 60_000, "\xe9t\xe9" * 100, "a b\tc;d\x7f", '"><script>', "\x80"])
async def test_an_id_of_any_kind_is_short_and_harmless_everywhere(duet, given, caplog):
    caplog.set_level("INFO")
    answer = await ask(
        duet, {"Host": "x", "Connection": "close", "Content-Type": "application/json", "X-Request-Id": given}
    )
    head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
    if head.split()[1] == "400":  # the server refuses what is no HTTP
        assert duet.prefill.seen == []
        return
    told = next(line for line in head.split("\r\n") if line.lower().startswith("x-request-id: "))[14:]
    inside = {engine.seen[0].header("x-request-id") for engine in (duet.prefill, duet.decode)}
    assert len(inside) == 1
    for each in (told, *inside):
        assert len(each) <= 73
        assert set(each) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "proxy.api.finish"]
    assert f"id={inside.pop()} " in line


async def test_the_engines_headers_reach_the_client_once(duet):
    answer = await ask(duet, {"Host": "x", "Connection": "close", "Content-Type": "application/json"})
    names = [line.partition(b":")[0].lower() for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
    assert sorted(set(names)) == sorted(names)
    assert b"server" not in names

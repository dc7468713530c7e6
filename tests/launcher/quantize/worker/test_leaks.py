"""Secrets in records are counted by kind; what only looks like them is not."""

import pytest

from launcher.quantize.worker.duet_quantizing.leaks import kinds


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("private key", "-----BEGIN RSA " + "PRIVATE KEY-----"),
        ("AWS access key", "AKIA" + "IOSFODNN7EXAMPLE"),
        ("GitHub token", "ghp_" + "a1B2" * 9),
        ("Hugging Face token", "hf_" + "aB3" * 10),
        ("Slack token", "xoxb-" + "1234567890-abc"),
        ("Google API key", "AIza" + "b" * 35),
        ("API key", "use sk-" + "proj-a1b2c3d4e5f6g7h8"),
        ("JSON web token", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxIn0x.abc"),
        ("bearer token", "Authorization: Bearer " + "a1b2c3d4e5f6g7h8i9j0"),
        ("password", "password = " + "hunter22hunter"),
        ("password in a URL", "postgres://me:" + "secret1@db/x"),
        ("e-mail address", "write to jane.doe+x@mail.example.org."),
        ("payment card", "4111 1111 1111 1111"),
    ],
)
def test_a_secret_is_found(kind: str, text: str):
    assert kinds(["nothing here", f"so: {text}", text]) == {kind: 2}


@pytest.mark.parametrize(
    "text",
    [
        "Ask for the bearer of this letter",
        "What is a password? password: ***",
        "task-based learning is risk-averse-and-so-on-it-goes",
        "at 12:30 @ the corner, see https://example.org/a@b",
        "4111 1111 1111 1112",
        "0000 0000 0000 0000",
        "1700000000000000",
        "a@b",
    ],
)
def test_what_is_no_secret_is_not(text: str):
    assert kinds([text]) == {}


def test_long_text_takes_no_long_time():
    assert kinds(["a@" * 50_000, "eyJ" * 50_000, "1 " * 50_000, "://a:" * 50_000, "api_key=" * 20_000]) is not None

"""Keys: those of clients, of which only digests are known here, and the one of the engines.

A plain SHA-256 is enough for what :func:`new_key` makes: nobody can try all of 256 random bits. It would not be enough
for a password that somebody has thought of.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256

from proxy.config import ConfigError
from proxy.headers import RawHeaders
from proxy.settings import ClientKey, Settings

CARRIERS = (b"authorization", b"x-api-key")
"""The headers in which OpenAI's and Anthropic's clients send their key."""
_BEARER = b"bearer "


class Keyring:
    """The keys that clients may have."""

    def __init__(self, keys: Sequence[ClientKey]) -> None:
        self._keys = [(bytes.fromhex(key.sha256), key.name) for key in keys]

    def owner(self, headers: RawHeaders) -> str | None:
        """The name of the first valid key in a request's headers. All are compared, however soon one fits."""
        found = None
        for name, value in headers:
            if name not in CARRIERS:
                continue
            if name == b"authorization":
                if value[: len(_BEARER)].lower() != _BEARER:
                    continue
                value = value[len(_BEARER) :]
            digest = sha256(value.strip()).digest()
            for known, owner in self._keys:
                if hmac.compare_digest(known, digest) and found is None:
                    found = owner
        return found


def without_keys(headers: RawHeaders) -> RawHeaders:
    """A request's headers without anybody's key."""
    return [header for header in headers if header[0] not in CARRIERS]


def new_key() -> tuple[str, str]:
    """A key and its digest in hexadecimal digits."""
    key = f"sk-{secrets.token_urlsafe(32)}"
    return key, sha256(key.encode()).hexdigest()


def engine_key(settings: Settings, environ: Mapping[str, str]) -> str | None:
    """What the engines want to see; raises :class:`ConfigError` when the environment does not hold it."""
    if settings.engine_key_env is None:
        return None
    key = environ.get(settings.engine_key_env, "")
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"proxy.engine_key_env: the environment variable {settings.engine_key_env} is "
            f"{'not a key in ASCII' if key else 'not set'}: set it to the engines' key"
        )
    return key

"""The proxy's certificate, from files."""

import ssl

from proxy.config import ConfigError
from proxy.settings import Tls


def server_context(files: Tls) -> ssl.SSLContext:
    """What the server needs; raises :class:`ConfigError` naming the file and its fault."""
    for name, path in (("certificate", files.certificate), ("key", files.key)):
        try:
            with open(path, "rb"):
                pass
        except OSError as exc:
            raise ConfigError(f"proxy.tls.{name}: cannot read {path}: {exc.strerror}") from exc
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except (ssl.SSLError, ValueError) as exc:
        raise ConfigError(
            f"proxy.tls: {files.certificate} and {files.key} are not a certificate chain and its key, both in PEM and "
            f"without a password: {exc}"
        ) from exc
    return context


def _no_password() -> str:
    raise ValueError("the key needs a password")

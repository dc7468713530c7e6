"""Whose certificates are believed of servers that somebody names by their address."""

import ssl

import httpx


def trust() -> ssl.SSLContext:
    """The usual public authorities, the machine's own, and that of the file in ``SSL_CERT_FILE``."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context

"""Every way in which an exchange of one request and one answer can fail.

::

    WireError
    ├── BadAddress       the URL names no HTTP server
    ├── Unsendable       the request would not be one HTTP request
    ├── Unreachable      no connection: nothing was sent
    ├── ConnectTimeout   no connection in time: nothing was sent
    ├── SendTimeout      the server did not take the request in time
    ├── AnswerTimeout    the answer, or its next piece, did not come in time
    ├── Broken           the connection ended before the answer was complete
    └── Malformed        what came is no HTTP answer
"""


class WireError(Exception):
    """Base of all."""


class BadAddress(WireError):
    """The URL has another scheme than http and https, or no host."""


class Unsendable(WireError):
    """A line break in a header, or other text that would become a second request."""


class Unreachable(WireError):
    """The connection was refused, the name is unknown or the certificate is not trusted."""


class ConnectTimeout(WireError):
    """The connection, TLS included, took too long."""


class SendTimeout(WireError):
    """The server stopped reading before it had the request."""


class AnswerTimeout(WireError):
    """The server stayed silent for too long."""


class Broken(WireError):
    """The connection was closed or reset before the answer was complete."""


class Malformed(WireError):
    """The server does not speak HTTP/1.1, or its headers are out of all proportion."""

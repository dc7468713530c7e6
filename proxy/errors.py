"""Every way in which a request can end without its answer.

::

    ProxyError
    ├── BadRequest              400  the client's fault
    │   ├── PolicyNotAllowed    400
    │   ├── Unauthorized        401
    │   ├── BodyTooLarge        413
    │   └── NotForClients       403
    ├── ClientGone              499  nobody's fault; nobody reads the answer
    ├── Overloaded              429  too much at a time; carries Retry-After
    │   └── NoRoom              429  of bytes
    ├── Draining                503  the proxy is about to end; carries Retry-After
    ├── NoInstance              503  the deployment's fault; carries Retry-After
    ├── ShuttingDown            503  the proxy ends before the answer does; carries Retry-After
    ├── EngineRejection         4xx  the client's fault; the engine's own answer, passed on unchanged
    └── EngineFailure           502  the fault of the instance it names
        ├── EngineUnreachable   502  no connection: the request was not sent
        ├── EngineTimeout       504  a limit of one leg ran out
        ├── EngineCut           502  the connection broke, or what came is no HTTP
        ├── EngineError         5xx  the engine's own answer, passed on unchanged
        ├── EngineAborted       503  the engine gave the request up, with status 200, as one that shuts down does
        └── PrefillWithoutKV    502  prefill answered 200 but handed over no usable KV parameters
"""

import json
import math
from typing import ClassVar

from proxy.headers import RawHeaders


class ProxyError(Exception):
    """Base of all; ``status`` and ``type`` are what the client is told."""

    status: int = 500
    type: ClassVar[str] = "InternalServerError"
    retry_after: int | None = None
    """Seconds for the Retry-After header."""
    closes: ClassVar[bool] = False
    """Whether the connection is closed after the answer."""
    unread: ClassVar[bool] = False
    """Whether more of the request's body may come."""


class BadRequest(ProxyError):
    """The request cannot be read."""

    status = 400
    type = "BadRequestError"


class PolicyNotAllowed(BadRequest):
    """The client asks for a failure policy that the deployment does not let it choose."""


class Unauthorized(BadRequest):
    """No key, or one that nobody has."""

    status = 401
    type = "AuthenticationError"


class BodyTooLarge(BadRequest):
    """The request's body is over the limit."""

    status = 413
    unread = True


class NotForClients(BadRequest):
    """The route operates an engine."""

    status = 403
    type = "PermissionDeniedError"


class ClientGone(ProxyError):
    """The client closed its connection before the answer was complete."""

    status = 499
    type = "ClientClosedRequest"


class Overloaded(ProxyError):
    """The proxy serves as many requests as it may, and more would wait too long."""

    status = 429
    type = "RateLimitError"

    def __init__(self, seconds: float) -> None:
        """``seconds`` is the wait that is expected."""
        super().__init__("Too many requests are being served and wait already: try again later.")
        self.retry_after = max(1, math.ceil(seconds))


class NoRoom(Overloaded):
    """The bodies of the requests that are served take all the memory they may."""

    unread = True

    def __init__(self) -> None:
        super().__init__(1.0)


class Draining(ProxyError):
    """The proxy finishes what it has and takes nothing new."""

    status = 503
    type = "ServiceUnavailableError"
    retry_after = 1
    closes = True

    def __init__(self) -> None:
        super().__init__("The proxy is shutting down: another one, or this one when it is back, will answer.")


class NoInstance(ProxyError):
    """No healthy instance of a needed role."""

    status = 503
    type = "ServiceUnavailableError"
    retry_after = 2


class ShuttingDown(ProxyError):
    """The proxy ends, and the request's time was up."""

    status = 503
    type = "ServiceUnavailableError"
    retry_after = 1
    closes = True


class EngineRejection(ProxyError):
    """An engine refused the request; its answer belongs to the client."""

    def __init__(self, status: int, headers: RawHeaders, body: bytes) -> None:
        super().__init__(f"the engine answered {status}")
        self.status = status
        self.headers = headers
        self.body = body


class EngineFailure(ProxyError):
    """An instance failed a request."""

    status = 502
    type = "BadGatewayError"
    kind: ClassVar[str] = "failure"
    """The value of the metric label."""
    answers: ClassVar[bool] = False
    """Whether the instance is alive at least."""
    at_once: ClassVar[bool] = False
    """Whether one such failure proves that the next request would fail, too."""

    def __init__(self, instance: str, detail: str) -> None:
        super().__init__(f"{instance}: {detail}")
        self.instance = instance


class EngineUnreachable(EngineFailure):
    """No connection to the instance."""

    kind = "unreachable"
    at_once = True


class EngineTimeout(EngineFailure):
    """The instance was too slow for one of the limits."""

    status = 504
    type = "GatewayTimeoutError"
    kind = "timeout"


class EngineCut(EngineFailure):
    """The connection ended before the answer did."""

    kind = "cut"


class EngineError(EngineFailure):
    """The instance answered with an error of its own."""

    kind = "error"
    answers = True

    def __init__(self, instance: str, status: int, headers: RawHeaders, body: bytes) -> None:
        super().__init__(instance, f"the engine answered {status}")
        self.status = status
        self.headers = headers
        self.body = body


class EngineAborted(EngineFailure):
    """The instance gave the request up; a later try may find it, or another one, at work."""

    status = 503
    type = "ServiceUnavailableError"
    retry_after = 2
    kind = "aborted"
    answers = True

    def __init__(self, instance: str) -> None:
        super().__init__(instance, "the engine aborted the request")


class PrefillWithoutKV(EngineFailure):
    """Decode would have to compute the whole prompt again."""

    kind = "without_kv"
    answers = True

    def __init__(self, instance: str) -> None:
        super().__init__(instance, "prefill answered without usable KV transfer parameters")


def error_body(message: str, kind: str, code: int) -> bytes:
    """An error as OpenAI clients read it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()

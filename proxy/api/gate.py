"""The first that sees a request: refuses what must not reach a route, and takes the client's key away."""

import uuid
from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.admission import Admission
from proxy.api.failures import failure_response
from proxy.api.finish import Finish
from proxy.endpoint import ROUTES, Endpoint
from proxy.errors import Draining, ProxyError, Unauthorized
from proxy.headers import RawHeaders, request_id, value_of
from proxy.keys import Keyring, without_keys
from proxy.metrics import Metrics
from proxy.record import Record

_OPS = frozenset({"/health", "/ready", "/pairs", "/experiment", "/overview", "/metrics", "/metrics/engines"})
"""Answered also while the proxy drains, and whoever has an operator's key may look at them."""
_OPEN = frozenset({"/health", "/ready"})
"""Need no key: who probes has none. Without one, ``/ready`` says no more than whether. Nor does the page that people
look at, which holds nothing by itself."""
_ACTIONS = frozenset({("POST", "/pairs/prove")})
"""Need an operator's key where there are such."""
_CLIENT = "duet.client"
_OPERATOR = "duet.operator"


def client_of(scope: Scope) -> str | None:
    """The name of the key that came with a request; ``None`` where none is needed."""
    name = scope.get(_CLIENT)
    return name if isinstance(name, str) else None


def operator_of(scope: Scope) -> str | None:
    """The name of the operator's key that came with a request."""
    name = scope.get(_OPERATOR)
    return name if isinstance(name, str) else None


def _is_page(path: str) -> bool:
    return path == "/ui" or path.startswith("/ui/")


class Gate:
    """Passes requests on to the application of their path, or to ``others``, or answers them itself.

    ``routes`` are those of the method POST. With ``hides_keys`` no application sees a key of a client; whose it was is
    in the scope. ``operators``: the keys of those who may act.
    """

    def __init__(
        self,
        routes: Mapping[str, ASGIApp],
        others: ASGIApp,
        *,
        keyring: Keyring | None,
        operators: Keyring | None,
        hides_keys: bool,
        admission: Admission,
        metrics: Metrics,
    ) -> None:
        self._routes = routes
        self._others = others
        self._keyring = keyring
        self._operators = operators
        self._hides_keys = hides_keys
        self._admission = admission
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._others(scope, receive, send)
            return
        try:
            self._check(scope)
        except ProxyError as error:
            await self._refuse(error, scope, receive, send)
            return
        route = self._routes.get(scope["path"]) if scope["method"] == "POST" else None
        await (route or self._others)(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raises the reason not to let the request in."""
        path, headers = scope["path"], scope["headers"]
        if self._operators is not None:
            scope[_OPERATOR] = self._operators.owner(headers)
        operator = operator_of(scope)
        if self._operators is not None and operator is None and (scope["method"], path) in _ACTIONS:
            raise Unauthorized(
                "This needs an operator's key: send Authorization: Bearer KEY, with one of proxy.admin_keys."
            )
        if self._keyring is not None:
            scope[_CLIENT] = self._keyring.owner(headers)
            may_look = operator is not None and (path in _OPS or (scope["method"], path) in _ACTIONS)
            if scope[_CLIENT] is None and not may_look and not _is_open(scope):
                raise Unauthorized(
                    "This address needs a key: send Authorization: Bearer KEY, with a key that is valid."
                )
        if self._hides_keys or operator is not None:
            scope["headers"] = without_keys(headers)
        if self._admission.closed and path not in _OPS and not _is_page(path):
            raise Draining

    async def _refuse(self, error: ProxyError, scope: Scope, receive: Receive, send: Send) -> None:
        given = value_of(scope["headers"], b"x-request-id")
        endpoint = ROUTES.get(scope["path"], Endpoint.OTHER)
        identity = request_id(given, uuid.uuid4().hex)
        record = Record(identity, endpoint, scope["method"], scope["path"], client_of(scope))
        Finish(record, self._metrics, self._admission)(error.status, error)
        await failure_response(error, record, unread=True)(scope, receive, send)


def _is_open(scope: Scope) -> bool:
    """Whether no key is needed."""
    path = scope["path"]
    return path in _OPEN or _is_page(path) or _is_preflight(scope["method"], scope["headers"])


def _is_preflight(method: str, headers: RawHeaders) -> bool:
    """A browser's question whether it may ask; it never carries a key, nor a body that would have to be kept."""
    if method != "OPTIONS" or value_of(headers, b"access-control-request-method") is None:
        return False
    length = value_of(headers, b"content-length") or "0"
    return length == "0" and value_of(headers, b"transfer-encoding") is None

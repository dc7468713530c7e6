"""The first that sees a request: refuses what must not reach a route."""

import uuid

from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.admission import Admission
from proxy.api.failures import failure_response
from proxy.api.finish import Finish
from proxy.errors import Draining, ProxyError
from proxy.headers import request_id, value_of
from proxy.metrics import Metrics
from proxy.record import Endpoint, Record

OPS = frozenset({"/health", "/ready", "/metrics"})
"""Answered by the proxy itself, also while it drains."""
_ENDPOINTS = {"/v1/completions": Endpoint.COMPLETIONS, "/v1/chat/completions": Endpoint.CHAT}


class Gate:
    """Passes requests on to the application, or answers them itself."""

    def __init__(self, app: ASGIApp, *, admission: Admission, metrics: Metrics) -> None:
        self._app = app
        self._admission = admission
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check(scope)
        except ProxyError as error:
            await self._refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        if self._admission.closed and scope["path"] not in OPS:
            raise Draining

    async def _refuse(self, error: ProxyError, scope: Scope, receive: Receive, send: Send) -> None:
        given = value_of(scope["headers"], b"x-request-id")
        endpoint = _ENDPOINTS.get(scope["path"], Endpoint.OTHER)
        finish = Finish(Record(request_id(given, uuid.uuid4().hex), endpoint), self._metrics, self._admission)
        finish(error.status, error)
        await failure_response(error, finish.record.headers())(scope, receive, send)

"""How each API that an engine speaks says what became of a request."""

from proxy.answer import Dialect
from proxy.dialects.messages import Messages
from proxy.dialects.openai import Completions
from proxy.dialects.responses import Responses
from proxy.endpoint import Endpoint

_COMPLETIONS = Completions()

DIALECTS: dict[Endpoint, Dialect] = {
    Endpoint.COMPLETIONS: _COMPLETIONS,
    Endpoint.CHAT: _COMPLETIONS,
    Endpoint.RESPONSES: Responses(),
    Endpoint.MESSAGES: Messages(),
    Endpoint.OTHER: _COMPLETIONS,
}

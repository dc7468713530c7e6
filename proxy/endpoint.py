"""Shape: the routes that the proxy tells apart."""

from enum import StrEnum


class Endpoint(StrEnum):
    """The routes that generate; the values label metrics."""

    COMPLETIONS = "completions"
    CHAT = "chat_completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    """Anthropic's."""
    OTHER = "other"
    """Passed on to one engine as it is."""


ROUTES = {
    "/v1/completions": Endpoint.COMPLETIONS,
    "/v1/chat/completions": Endpoint.CHAT,
    "/v1/responses": Endpoint.RESPONSES,
    "/v1/messages": Endpoint.MESSAGES,
}
"""The paths of those that generate."""

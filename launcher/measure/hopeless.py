"""Decision: whether going on asking is of no use."""

from collections.abc import Sequence

from launcher.measure.sample import Sample

ENOUGH = 3
"""First requests that tell it."""
_FIXES = {
    "no connection": "name the address of a running server, e.g. http://127.0.0.1:8000",
    "HTTP 401": "give a key by --key",
    "HTTP 403": "give a key that may do this by --key",
    "HTTP 404": "name a server of OpenAI's API without /v1, and a model that it has",
}


def hopeless(first: Sequence[Sample], url: str) -> str | None:
    """What to say when all of the first requests failed, in such a way that no other will fare better; else nothing."""
    kinds = {kind_of(each.error) for each in first}
    if not first or len(kinds) > 1 or (kind := next(iter(kinds))) not in _FIXES:
        return None
    return f"{url} cannot be measured ({first[0].error}): {_FIXES[kind]}"


def kind_of(error: str | None) -> str:
    """What stands before the first colon, so that failures of a kind are counted together; empty for none."""
    return (error or "").partition(":")[0]

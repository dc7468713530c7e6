"""Decision: ``docs/metrics.md``, made of the metrics themselves."""

from collections.abc import Iterator, Mapping

from proxy import engine_instruments as engines
from proxy.engine_instruments import MADE, TOLD
from proxy.instrument import Instrument, Kind, Merge
from proxy.instruments import GROUPS, LABELS

_HEAD = """# Metrics of the proxy

Made of the metrics themselves by `proxy --metrics`. `GET /metrics` answers them, on the operators' address if there is
one (`proxy.admin`), else where clients are, and then with a key where clients need one.

With several workers (`proxy.workers`) whoever is asked answers for all: counters and histograms are exact sums, a
tenth of a second later, also of workers that have ended; of a gauge the table says what it is. A sample that names an
instance vanishes when the configuration drops that instance, and comes back with its count when the instance does. A
metric with labels appears when it first has something to count. No label holds what clients write, so there are never
more samples than kinds of requests that the deployment can tell apart.

Where `proxy.tracing` is set, one process serves and the scraper asks for OpenMetrics (`Accept`), buckets of
`duet_ttft_seconds` and `duet_request_duration_seconds` have the trace of their last request as exemplar.

Time by output token is counted by tokens where the answer tells how many it has. A stream of chat or plain completions
does when the client asks (`stream_options: {include_usage: true}`). Else events are counted, and under speculation one
event has several tokens: look at the label `counted` before two deployments are compared. There is no histogram of the
time between all events: counting is done once for each request. Of each stream its worst stall is counted.
"""
_ENGINES = """
## Metrics of the engines

`GET /metrics/engines`, where `/metrics` is, tells the engines' own metrics of all instances under names that stay the
same when vLLM's change: what the proxy's health monitor saw at its last look (`proxy.probe_interval`). An engine that
has told nothing for `proxy.frozen_after` seconds has `duet_engine_up` 0 and no other series but its age, so that no
alert goes on with what was. Bounds of buckets are the engine's.
"""
_WORKERS = {Merge.SUM: "sum", Merge.LEAST: "least", Merge.MOST: "most"}


def page() -> str:
    """Markdown, a table for each group."""
    return "".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    for title, instruments in GROUPS.items():
        yield f"\n## {title}\n\n| metric | type | labels | unit | meaning |\n| --- | --- | --- | --- | --- |\n"
        for each in instruments:
            labels = ", ".join(f"`{label}`" for label in each.labels)
            yield f"| `{each.shown}` | {_type(each)} | {labels} | {each.unit} | {each.meaning} |\n"
    yield "\n## Labels\n\n| label | values |\n| --- | --- |\n"
    yield from _labels(LABELS)
    yield "\n## Buckets\n\n| histogram | upper bounds, seconds |\n| --- | --- |\n"
    for each in (each for instruments in GROUPS.values() for each in instruments if each.buckets):
        yield f"| `{each.shown}` | {', '.join(f'{bound:g}' for bound in each.buckets)} |\n"
    yield from _engines()


def _engines() -> Iterator[str]:
    yield _ENGINES
    yield "\n| metric | type | labels | unit | in vLLM 0.32 | meaning |\n| --- | --- | --- | --- | --- | --- |\n"
    for source, each in (*((None, made) for made in MADE), *((told.source, told.shown) for told in TOLD)):
        labels = ", ".join(f"`{label}`" for label in each.labels)
        called = "" if source is None else f"`{source}`"
        yield f"| `{each.shown}` | {each.kind} | {labels} | {each.unit} | {called} | {each.meaning} |\n"
    yield "\n| label | values |\n| --- | --- |\n"
    yield from _labels(engines.LABELS)
    yield "\nOlder names that are understood: "
    yield ", ".join(f"`{older}` for `{today}`" for older, today in engines.OLDER.items()) + ".\n"


def _labels(labels: Mapping[str, str]) -> Iterator[str]:
    for label, values in labels.items():
        yield f"| `{label}` | {values} |\n"


def _type(instrument: Instrument) -> str:
    if instrument.kind is Kind.GAUGE:
        return f"gauge, {_WORKERS[instrument.merge]} of workers"
    return instrument.kind

"""Dashboards' queries, as Grafana would ask them."""

import math
from collections.abc import Callable, Iterable

from tests.dashboards.parts import Page

Ask = Callable[[str], list[dict]]


def plain(expr: str, *, job: str = ".*", every: str = "5m") -> str:
    """One query for all engines and namespaces; ``every``: what Grafana takes for ``$__rate_interval``."""
    chosen = {"$__rate_interval": every, "$job": job, "$other": job, "$namespace": ".*", "$engine": ".*"}
    for name, value in chosen.items():
        expr = expr.replace(name, value)
    return expr


def without_data(ask: Ask, pages: Iterable[Page], excused: Iterable[str], *, job: str, every: str) -> list[str]:
    """Queries that show nothing, with their panels; but for those that name what is ``excused``."""
    return [
        f"{page.title}: {panel.title}: {query.expr}"
        for page in pages
        for panel in page.panels
        for query in panel.asked
        if not any(name in query.expr for name in excused) and not _shows(ask(plain(query.expr, job=job, every=every)))
    ]


def _shows(series: list[dict]) -> bool:
    return any(not math.isnan(float(each["value"][1])) for each in series)

"""Decision: an outcome as one HTML page."""

from launcher import page
from launcher.quantize.outcome import Outcome
from launcher.quantize.report import told


def render(outcome: Outcome) -> str:
    """The page; the same outcome gives the same bytes. Needs the extra ``measure``."""
    return page.render("launcher.quantize.report", "page.html.j2", told.told(outcome))

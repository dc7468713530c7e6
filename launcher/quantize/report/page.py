"""Decision: an outcome as one HTML page that needs nothing else: no script, no network, no font."""

from launcher.quantize.outcome import Outcome
from launcher.quantize.report import told


def render(outcome: Outcome) -> str:
    """The page; the same outcome gives the same bytes. Needs the extra ``measure``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("launcher.quantize.report", "."),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(told.told(outcome)) + "\n"

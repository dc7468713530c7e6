"""Decision: one HTML page that needs nothing else: no script, no network, no font. All reports look alike."""

from collections.abc import Mapping


def render(package: str, template: str, values: Mapping[str, object]) -> str:
    """A template of this package, which extends ``base.html.j2``; the same values give the same bytes.

    Needs the extra ``measure``.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader("launcher.page", ".")]),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values) + "\n"

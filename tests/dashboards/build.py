"""Writes ``helm/files/dashboards``: ``python -m tests.dashboards.build``, or ``scripts/dashboards``."""

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tests.dashboards import engines, overview, pd_and_kv, quantization_ab, speculation
from tests.dashboards.parts import Page

PAGES: tuple[Page, ...] = (overview.PAGE, pd_and_kv.PAGE, speculation.PAGE, quantization_ab.PAGE, engines.PAGE)
FOLDER = Path(__file__).parents[2] / "helm/files/dashboards"


def text(page: Page) -> str:
    """Its file."""
    return json.dumps(page.built(), cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (FOLDER / f"{page.name}.json").write_text(text(page))

"""What preflight knows is written down from the rules themselves."""

import os
from pathlib import Path

from launcher.preflight import RULES, catalogue, engine
from launcher.preflight.examine import POSSIBLE

PAGE = Path(__file__).parents[3] / "docs" / "preflight.md"


def test_every_rule_is_in_it_and_says_what_it_finds():
    found = catalogue.entries()
    assert sorted(each.name for each in found) == sorted(rule.name for rule in (POSSIBLE, *RULES, *engine.RULES))
    assert all(each.finds and each.source for each in found)


def test_the_page_is_made_of_it():
    """After a change: ``DUET_UPDATE_GOLDEN=1 python -m pytest tests/launcher/preflight/test_catalogue.py``."""
    if os.environ.get("DUET_UPDATE_GOLDEN"):
        PAGE.write_text(catalogue.page())
    assert PAGE.read_text() == catalogue.page()

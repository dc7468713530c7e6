"""Real proxies and a real Prometheus with the file of rules as it is, but for its times, which are a 30th."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from inspect import isawaitable
from pathlib import Path

import pytest

from tests.alerts import prometheus
from tests.alerts.deployments import STORIES, Deployment, Story, deployed
from tests.alerts.rules import rules
from tests.dashboards import speculation
from tests.dashboards.asked import without_data
from tests.launcher.local.deployments import wait_until
from tests.programs import needs

pytestmark = needs("prometheus", "prometheus")
_FASTER = 30
_PATIENCE = 240
"""Seconds, for all alerts to fire, or to end: the slowest waits for its window and its delay, 15 minutes each."""
_LOOK = 0.2
"""Seconds between two looks at the alerts."""
_ELSEWHERE = {"DuetCalibrationDrift"}
"""Alerts on what no proxy tells; promtool alone tries them."""
Seen = set[tuple[str, str, str]]


def _seen(alerts: list[dict[str, str]]) -> Seen:
    return {(each["job"], each["alertname"], each.get("engine") or each.get("decode") or "") for each in alerts}


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """One for each deployment."""
    made = [tmp_path / story.job for story in STORIES]
    for folder in made:
        folder.mkdir()
    return made


def test_all_alerts_are_tried():
    tried = {alert for story in STORIES for alert, _ in story.expected}
    assert tried | _ELSEWHERE == {rule["alert"] for rule in rules("alert")}


@pytest.mark.timeout(600)
async def test_each_trouble_is_alerted_for_its_deployment_alone_and_ends_with_it(folders: list[Path], tmp_path: Path):
    async with AsyncExitStack() as stack:
        stories: list[tuple[Story, Deployment]] = [
            (story, await stack.enter_async_context(deployed(story, folder)))
            for story, folder in zip(STORIES, folders, strict=True)
        ]
        proxies = {story.job: deployment.address for story, deployment in stories}
        scraper = stack.enter_context(prometheus.running(proxies, tmp_path, faster=_FASTER))
        expected = {(story.job, *alert) for story in STORIES for alert in story.expected}
        ever: Seen = set()

        async def until(wanted: Callable[[Seen], bool]) -> None:
            now: Seen = set()
            try:
                async with asyncio.timeout(_PATIENCE):
                    while True:
                        now = _seen(await asyncio.to_thread(scraper.firing))
                        ever.update(now)
                        if wanted(now):
                            return
                        await asyncio.sleep(_LOOK)
            except TimeoutError:
                pytest.fail(f"never fired: {sorted(expected - ever)}; firing: {sorted(now)}")

        await asyncio.to_thread(wait_until, lambda: len(scraper.ask("up == 1")) == 2 * len(proxies), patience=60)
        for story, deployment in stories:
            await _do(story.begin(deployment))
        await until(lambda _: expected <= ever)
        await asyncio.to_thread(_panels_of_speculation_show, scraper)
        for story, deployment in stories:
            await _do(story.end(deployment))
        await until(lambda now: not now)
    # On a machine that is very busy a proxy may well answer nobody for as long as a 30th of 2 minutes.
    follow = {(story.job, alert) for story in STORIES for alert in (*story.may_follow, "DuetTargetMissing")}
    assert {each for each in ever - expected if each[:2] not in follow} == set()


async def _do(done: object) -> None:
    if isawaitable(done):
        await done


def _panels_of_speculation_show(scraper: prometheus.Prometheus) -> None:
    """Of the engine that speculates; engines without have none of it."""
    assert without_data(scraper.ask, [speculation.PAGE], [], job="counters", every="20s") == []

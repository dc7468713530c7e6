"""A real Prometheus before a real pair: dashboards show something, and an engine that freezes is alerted about."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import psutil
import pytest

from tests.alerts import prometheus
from tests.dashboards.asked import without_data
from tests.dashboards.build import PAGES
from tests.launcher.local.deployments import wait_until
from tests.programs import needs
from tests.real.conftest import MODEL, Pair

pytestmark = needs("prometheus", "prometheus")
_FASTER = 30
"""Times of the rules are divided by this, and nothing else of them is changed."""
EXCUSED = {
    "draft": "this pair does not speculate",
    "accept": "this pair does not speculate",
    "tpot_without_speculation": "nobody has measured it",
    "duet_reference_agreement": "there are no reference answers",
    "duet_prefill_queue_seconds": "it is shown under the policy ttft only",
    "DCGM": "there is no GPU",
    "ALERTS": "nothing is wrong",
    "duet_refused_total": "nothing was refused",
    "duet_retries_total": "nothing was tried again",
    "duet_client_disconnects_total": "no client left",
    "duet_upstream_failures_total": "no engine failed",
}
"""What queries name that show nothing here, and why."""


@pytest.fixture(scope="module")
def scraper(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[prometheus.Prometheus]:
    """Prometheus, that has looked once."""
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus.running({"duet": pair.proxy.removeprefix("http://")}, folder, faster=_FASTER) as running:
        wait_until(lambda: len(running.ask("up == 1")) == 2)
        yield running


def test_each_panel_shows_something(pair: Pair, through_proxy: openai.OpenAI, scraper: prometheus.Prometheus):
    httpx.post(f"{pair.proxy}/pairs/prove", trust_env=False, timeout=60).raise_for_status()
    asked = 0

    def shown() -> bool:
        nonlocal asked
        asked += 1
        prompt = f"question number {asked} of those that are asked while somebody looks " * 8
        for event in through_proxy.completions.create(
            model=MODEL, prompt=prompt, max_tokens=8, stream=True, stream_options={"include_usage": True}
        ):
            assert event.id
        through_proxy.completions.create(model=MODEL, prompt=prompt, max_tokens=2, n=2)
        return not missing()

    def missing() -> list[str]:
        return without_data(scraper.ask, PAGES, EXCUSED, job="duet", every="20s")

    wait_until(shown, lambda: "\n".join(missing()), patience=60)


def test_a_frozen_engine_is_alerted_about_until_it_thaws(
    pair: Pair, through_proxy: openai.OpenAI, scraper: prometheus.Prometheus
):
    def firing() -> set[tuple[str, str | None]]:
        return {(alert["alertname"], alert.get("engine")) for alert in scraper.firing()}

    assert firing() == set()
    server = psutil.Process(pair.launcher.instance("decode-0")["pid"])
    behind = server.children(recursive=True)
    with ThreadPoolExecutor() as threads:
        try:
            for process in behind:
                os.kill(process.pid, signal.SIGSTOP)
            waiting = threads.submit(
                through_proxy.completions.create, model=MODEL, prompt="Is anybody there?", max_tokens=4
            )
            wait_until(lambda: ("DuetEngineFrozen", "decode-0") in firing(), lambda: str(firing()), patience=60)
        finally:
            for process in behind:
                os.kill(process.pid, signal.SIGCONT)
        assert waiting.result().choices[0].finish_reason == "length"
    wait_until(lambda: not firing(), lambda: str(firing()), patience=60)
    # The alert may end before the proxy has looked again; others share the pair.
    wait_until(lambda: httpx.get(f"{pair.proxy}/ready", trust_env=False).json()["modes"]["pd"], patience=60)

"""The proxy's log as the launcher keeps and shows it."""

import json
import urllib.request

from launcher.local.keeper import RUN_MARK
from tests.launcher.local.conftest import Launch


def test_objects_stay_whole_and_a_requests_line_is_found_by_its_id(launch: Launch, command, proxy_port: int):
    launch("--set", "proxy.log.format=json", "--set", "proxy.workers=2").wait_ready()
    body = json.dumps({"model": "fake", "prompt": "a secret", "max_tokens": 2}).encode()
    headers = {"content-type": "application/json", "x-request-id": "mine"}
    request = urllib.request.Request(f"http://127.0.0.1:{proxy_port}/v1/completions", body, headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        assert response.status == 200

    shown = command("logs", "proxy", "--lines", "500", "--output", "json").stdout
    texts = [line["line"] for line in map(json.loads, shown.splitlines()) if line["instance"] == "proxy"]
    said = [json.loads(text) for text in texts if not text.startswith(RUN_MARK)]
    (line,) = [each for each in said if str(each.get("request_id")).startswith("mine-")]
    assert (line["status"], line["path"], line["completion_tokens"]) == (200, "pd", 2)
    assert "a secret" not in shown

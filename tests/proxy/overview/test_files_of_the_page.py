"""``/ui`` as it is served."""

import pytest

from proxy.api.page import FOLDER
from proxy.keys import new_key
from proxy.settings import ClientKey, Settings

PARTS = sorted(file.name for file in FOLDER.iterdir())


async def test_the_page_is_html_that_may_load_and_run_nothing_from_elsewhere(duet):
    answer = await duet.client.get("/ui/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert duet.decode.echoed == []


async def test_without_the_slash_one_is_sent_there_below_whatever_path_the_proxy_is(duet):
    answer = await duet.client.get("/ui")
    assert (answer.status_code, answer.headers["location"]) == (307, "ui/")


@pytest.mark.parametrize("name", PARTS)
async def test_each_part_has_its_type_and_is_asked_for_only_once(duet, name):
    answer = await duet.client.get(f"/ui/{name}")
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
    assert answer.headers["cache-control"] == "no-cache"
    again = await duet.client.get(f"/ui/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await duet.client.head(f"/ui/{name}")).status_code == 200


@pytest.mark.parametrize("path", ["/ui/none.js", "/ui/../api/page.py", "/ui/%2e%2e/api/page.py", "/ui/a/b"])
async def test_nothing_else_is_served_there(duet, path):
    assert (await duet.client.get(path)).status_code == 404


async def test_no_part_names_another_origin():
    for name in PARTS:
        text = (FOLDER / name).read_text().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in text.replace("// ", ""), name
        assert "innerHTML" not in text


async def test_the_page_needs_no_key_as_it_holds_nothing(start):
    _, digest = new_key()
    duet = await start(settings=Settings(client_keys=(ClientKey("alice", digest),)))
    assert (await duet.client.get("/ui/")).status_code == 200
    assert (await duet.client.get("/ui/main.js")).status_code == 200
    assert (await duet.client.get("/ui/none.js")).status_code == 404
    assert (await duet.client.get("/uix")).status_code == 401

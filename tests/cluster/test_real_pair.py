"""vLLM itself as pods: a prefill and a decode engine on the CPU, KV moved by NIXL between the pods' addresses."""

import os
import shutil

import httpx
import pytest

from launcher import loader, machine
from launcher.bundled.prepare import prepare
from launcher.cluster.values import values
from tests.cluster.conftest import new_namespace
from tests.cluster.release import Release
from tests.cluster.site import MODEL

QUESTION = {
    "model": "smollm2",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "max_tokens": 16,
    "temperature": 0,
}


@pytest.fixture(scope="module")
def pair(site, tmp_path_factory):
    """Installed, with the model in a folder that anybody may read."""
    if site.image is not None:
        pytest.skip("the image of this project has no vLLM")
    cache = machine.look(os.environ).cache
    prepare(MODEL, cache, print)
    folder = tmp_path_factory.mktemp("pair")
    model = shutil.copytree(cache / "models" / MODEL, folder / "model")
    for file in model.iterdir():
        file.chmod(0o644)
    profile = folder / "pair.yaml"
    profile.write_text(
        f"""\
description: The demo's pair
extends: demo
model: {{bundled: null, path: "{model}"}}
roles: {{prefill: {{cores: 1}}, decode: {{cores: 1}}}}
proxy: {{timeouts: {{whole_answer: 60}}}}
engine_command: ["{site.python}", -P, -m, vllm.entrypoints.launchers.api_server.entry]
"""
    )
    site.folders = [str(model)]
    with new_namespace(site) as namespace:
        release = Release(site, namespace, folder)
        release.install(
            {**values(loader.load(str(profile)), "pair"), **site.values(), "model": {"inImage": True}}, wait=False
        )
        release.rolled_out(300)
        yield release
    site.folders = []


@pytest.mark.timeout(600)
async def test_kv_moves_between_two_pods_and_again_after_one_was_killed(pair, tmp_path):

    async with httpx.AsyncClient(base_url=pair.url(), timeout=120, trust_env=False) as proxy:
        await pair.hands_over(proxy)
        await asked(pair, proxy)
        assert "proven" in pair.helm("test", "pd", "--logs")

        (victim,) = pair.names("prefill")
        pair.kubectl("delete", "pod", victim, "--force", "--grace-period=0")
        during = await proxy.post("/v1/chat/completions", json=QUESTION)
        assert during.status_code == 200
        assert during.headers["x-duet-path"] in ("pd", "aggregated")

        async def replaced():
            return [name != victim for name in pair.names("prefill")]

        await pair.until(replaced, [True], "another prefill pod")
        pair.rolled_out(300)
        await pair.hands_over(proxy)
        await asked(pair, proxy)


async def asked(pair, proxy):
    """A question is answered, and decode received the KV of its prompt."""
    answer = await proxy.post("/v1/chat/completions", json=QUESTION)
    assert answer.headers["x-duet-path"] == "pd"
    assert "Paris" in answer.json()["choices"][0]["message"]["content"]
    proofs = (await proxy.post("/pairs/prove")).json()["pairs"]
    assert [proof["proof"]["verdict"] for proof in proofs] == ["proven"]
    assert proofs[0]["proof"]["tokens"] > 200

"""An engine that crashes again and again."""

import httpx

from tests.cluster.release import Release


async def metrics_of_proxy(release: Release) -> str:
    """Of its pod: a Service has none that is not ready. Empty as long as it has no address."""
    (pod,) = release.pods("proxy")
    if (address := pod["status"].get("podIP")) is None:
        return ""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        return (await client.get(f"http://{address}:8000/metrics")).text


async def test_it_counts_as_down_and_not_as_drained_on_purpose(release: Release, fakes):
    values = fakes()
    crashing = [*values["engine"]["extraEnv"], {"name": "FAKE_ENGINE_CRASH_AFTER", "value": "3"}]
    release.install({**values, "decode": {"extraEnv": crashing}}, wait=False)

    async def counted() -> dict[str, bool]:
        (pod,) = release.pods("decode")
        text, label = await metrics_of_proxy(release), f'{{engine="{pod["metadata"]["name"]}"'
        values = {line.partition("{")[0]: line.rpartition(" ")[2] for line in text.splitlines() if label in line}
        return {
            "crashed": any(each["restartCount"] for each in pod["status"].get("containerStatuses", ())),
            "down": values.get("duet_instance_healthy") == "0.0",
            "drained": values.get("duet_instance_draining") == "1.0",
        }

    await release.until(counted, {"crashed": True, "down": True, "drained": False}, "the engine that crashes")

"""The number of instances follows what engines say of their load: Prometheus, a metrics adapter, the chart's HPA."""

import asyncio
import json
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.cluster.traffic import traffic
from tests.ports import free_port
from tests.programs import needs

METRIC = "vllm_num_requests_running"


@contextmanager
def running(*command: str):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def metrics_of_pods(site, adapter: str, url: str):
    """The API of custom metrics; left behind without anybody who serves it, it would keep namespaces from going."""
    try:
        with running(adapter, "--metric", METRIC, "--prometheus", url):
            yield
    finally:
        site.run("kubectl", "delete", "apiservice", "v1beta1.custom.metrics.k8s.io", "--ignore-not-found")


@contextmanager
def prometheus(folder: Path, targets: Path):
    port = free_port()
    config = folder / "prometheus.yml"
    engines = {"job_name": "engines", "scrape_interval": "1s", "file_sd_configs": [{"files": [str(targets)]}]}
    config.write_text(yaml.safe_dump({"scrape_configs": [engines]}))
    where = f"127.0.0.1:{port}"
    storage = f"--storage.tsdb.path={folder / 'data'}"
    with running("prometheus", f"--config.file={config}", storage, f"--web.listen-address={where}"):
        yield f"http://{where}"


def seen_by_prometheus(release, targets: Path) -> None:
    """The engines as they are now, with the labels by which the adapter finds them."""
    found = [
        {
            "targets": [f"{pod['status']['podIP']}:8100"],
            "labels": {"namespace": release.namespace, "pod": pod["metadata"]["name"]},
        }
        for pod in release.pods("decode")
        if pod["status"].get("podIP")
    ]
    new = targets.with_suffix(".new")
    new.write_text(json.dumps(found))
    new.replace(targets)


@needs("prometheus", "prometheus")
async def test_instances_come_with_the_load_and_an_upgrade_leaves_them(own_cluster, release, fakes, client, tmp_path):
    adapter = shutil.which("custom-metrics-adapter")
    if adapter is None:
        pytest.skip("no adapter of metrics in this cluster")
    scaled = {"kind": "hpa", "min": 1, "max": 3, "metric": METRIC, "target": "2"}
    values = {**fakes(env={"FAKE_ENGINE_PACE": "0.05"}), "decode": {"autoscaling": scaled}}
    release.install(values)
    proxy = client()
    await release.hands_over(proxy)
    targets = tmp_path / "targets.json"
    seen_by_prometheus(release, targets)

    async def replicas():
        seen_by_prometheus(release, targets)
        return release.site.get("deployment", "pd-decode", "-n", release.namespace)["status"].get("readyReplicas")

    with prometheus(tmp_path, targets) as url, metrics_of_pods(own_cluster, adapter, url):
        async with traffic(release.url(), clients=12, tokens=60) as load:
            await release.until(replicas, 3, "decode instances")
            await release.hands_over(proxy, 3)
            await load.more(40)
        served = {answer.decode for answer in load.answers[-30:]}
        assert len(served) == 3
        assert not load.hurt()
        async with httpx.AsyncClient(trust_env=False) as asking:
            answer = await asking.get(f"{url}/api/v1/query", params={"query": "vllm:num_requests_running"})
        assert len(answer.json()["data"]["result"]) == 3

        await asyncio.to_thread(release.install, values)
        assert len(release.names("decode")) == 3, "the autoscaler owns the number"

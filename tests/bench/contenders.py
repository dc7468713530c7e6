"""Who is measured, and how each is started in front of one prefill and one decode stub."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from proxy.config import ProxyConfig, dump
from proxy.settings import Canary, Settings
from proxy.topology import ConnectorKind, Instance, Role, Topology

Start = Callable[[int, str, str, Path], list[str]]
"""Port, address of prefill and of decode, a folder for files -> command line."""


VLLM_ROUTER = Path(sys.executable).with_name("vllm-router")


def duet(port: int, prefill: str, decode: str, folder: Path) -> list[str]:
    """This proxy, one worker."""
    instances = (Instance("prefill-0", Role.PREFILL, prefill), Instance("decode-0", Role.DECODE, decode))
    config = folder / f"duet-{port}.json"
    settings = Settings(port=port, canary=Canary(enabled=False))
    config.write_text(dump(ProxyConfig(Topology(instances, ConnectorKind.NIXL_PULL), settings)))
    return [sys.executable, "-P", "-m", "proxy", "--config", str(config)]


def without_metrics(port: int, prefill: str, decode: str, folder: Path) -> list[str]:
    """This proxy, which counts nothing."""
    *_, option, config = duet(port, prefill, decode, folder)
    return [sys.executable, "-P", "-m", "tests.bench.without_metrics", option, config]


def vllm_router(port: int, prefill: str, decode: str, folder: Path) -> list[str]:
    """The Rust router of the vLLM project, from PyPI."""
    return [
        str(VLLM_ROUTER),
        *("--vllm-pd-disaggregation", "--prefill", prefill, "--decode", decode, "--policy", "round_robin"),
        *("--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(port + 1000), "--log-level", "warning"),
    ]


def naive(port: int, prefill: str, decode: str, folder: Path) -> list[str]:
    """FastAPI and httpx, two steps."""
    return [sys.executable, "-m", "tests.bench.naive", str(port), prefill, decode]


CONTENDERS: Mapping[str, Start] = {
    "duet": duet,
    "duet without metrics": without_metrics,
    "vllm-router": vllm_router,
    "naive FastAPI + httpx": naive,
}

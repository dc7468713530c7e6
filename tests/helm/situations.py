"""Values that switch on what the chart has; the more the better the tests see."""

from typing import Any

from tests.helm import charts

_EVERYTHING: dict[str, Any] = {
    "existingSecret": "secrets",
    "imagePullSecrets": [{"name": "registry"}],
    "huggingFace": {"existingSecret": "hub"},
    "model": {"inImage": True},
    "modelCache": {"kind": "pvc"},
    "download": {"enabled": True},
    "sharedFolder": {"existingClaim": "kv"},
    "engine": {
        "replicas": 2,
        "rdma": {"enabled": True},
        "nearPeers": {"enabled": True},
        "resources": {"limits": {"memory": "64Gi"}, "requests": {"memory": "64Gi"}},
    },
    "proxy": {
        "replicas": 2,
        "service": {"type": "NodePort", "nodePort": 30080},
        "tls": {"existingSecret": "certificate"},
        "ingress": {"enabled": True, "host": "llm.example.org"},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}], "hostnames": ["llm.example.org"]},
    },
    "networkPolicy": {"enabled": True, "clients": [{"podSelector": {"matchLabels": {"app": "web"}}}]},
    "monitoring": {
        "serviceMonitor": {"enabled": True},
        "podMonitor": {"enabled": True},
        "rules": {"enabled": True},
        "dashboards": {"enabled": True},
    },
    "test": {"keys": {"existingSecret": "keys"}},
}


def plain(profile: str) -> dict[str, Any]:
    """Nothing but the profile."""
    return {"profile": profile}


def everything(profile: str) -> dict[str, Any]:
    """All that goes together."""
    return _EVERYTHING | {"profile": profile}


def scaled(profile: str, kind: str) -> dict[str, Any]:
    """By an autoscaler."""
    keda = {"serverAddress": "http://prometheus.monitoring:9090"}
    return everything(profile) | {"engine": {"autoscaling": {"kind": kind, "min": 1, "max": 4, "keda": keda}}}


def on_several_machines() -> dict[str, Any]:
    """Decode spans two, and needs a LeaderWorkerSet."""
    plan = charts.plan("api-throughput")
    plan["engines"]["decode"] |= {"nodes": 2, "replicas": 2, "workerArgs": ["--headless"]}
    return everything("") | {"plan": plan, "engine": {}}


def guarded() -> dict[str, Any]:
    """TLS, keys of engines, an address for operators, files that both roles need, an own model."""
    plan = charts.plan("api-throughput")
    plan["proxy"] |= {"tls": True, "adminPort": 8001, "variables": ["ENGINE_KEY"]}
    plan["sharedFolder"] = "/duet/kv"
    plan["model"] |= {"source": "path", "name": "/models/mine"}
    for engine in plan["engines"].values():
        engine |= {"secrets": ["ENGINE_KEY", "HF_TOKEN"], "bootstrap": True, "scaling": {"min": 1, "max": 3}}
    return everything("") | {
        "plan": plan,
        "model": {"volume": {"persistentVolumeClaim": {"claimName": "models"}}},
        "download": {},
        "modelCache": {"kind": "hostPath", "hostPath": "/models"},
    }


def all_of_them() -> dict[str, dict[str, Any]]:
    """By what they are called."""
    return {
        **{f"plain {profile}": plain(profile) for profile in charts.PROFILES},
        **{f"everything {profile}": everything(profile) for profile in charts.PROFILES},
        "hpa": scaled("api-throughput", "hpa"),
        "hpa, aggregated": scaled("interactive", "hpa"),
        "keda": scaled("api-throughput", "keda"),
        "several machines": on_several_machines(),
        "guarded": guarded(),
        "guarded and scaled": guarded() | {"engine": {"autoscaling": {"kind": "hpa"}}},
        "existing claim": everything("demo")
        | {
            "modelCache": {"kind": "existingClaim", "existingClaim": "models"},
            "download": {"enabled": True, "hook": True},
        },
    }

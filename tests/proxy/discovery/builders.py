"""Pods as the API server tells them."""

import json
from typing import Any


def pod(
    name: str,
    role: str = "decode",
    *,
    address: str | None = "10.0.0.1",
    port: int = 8100,
    phase: str = "Running",
    ready: bool = True,
    ends: bool = False,
    revision: str | None = None,
    facts: str | None = None,
    padding: int = 0,
) -> dict[str, Any]:
    labels = {"duet/role": role} | ({} if revision is None else {"duet/revision": revision})
    annotations = {"padding": "x" * padding} | ({} if facts is None else {"duet/facts": facts})
    return {
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations,
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if ends else {}),
        },
        "spec": {
            "containers": [
                {"name": "sidecar"},
                {
                    "name": "engine",
                    "ports": [
                        {"name": "side-channel", "containerPort": 5600},
                        {"name": "http", "containerPort": port},
                    ],
                },
            ]
        },
        "status": {
            "phase": phase,
            **({} if address is None else {"podIP": address}),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def facts(**values: str) -> str:
    return json.dumps(values)

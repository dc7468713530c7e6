"""What Kubernetes, and the operators whose objects the chart makes, would refuse."""

import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.protocols import Validator
from kubernetes_validate.utils import all_versions
from referencing import Registry, Resource

from tests.helm.charts import Manifest, pods

_SCHEMAS = resources.files("kubernetes_validate") / "kubernetes-json-schema"
_OPERATORS = Path(__file__).parent / "schemas"


def versions() -> list[str]:
    """Of Kubernetes, those that are known: 1.25.0 and newer."""
    return all_versions()


def faults(manifest: Manifest, version: str) -> Iterator[str]:
    """All that is wrong with an object, unknown fields included; its pods, too, where its kind is an operator's."""
    kind, api = manifest["kind"], manifest["apiVersion"]
    called = f"{kind} {manifest['metadata']['name']}"
    if (_OPERATORS / f"{kind}.json").exists():
        validator = _of_operator(kind)
        for pod in pods([manifest]):
            name = {"name": manifest["metadata"]["name"]}
            whole = {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": pod["metadata"] | name}
            yield from faults(whole, version)
    else:
        validator = _of_kubernetes(kind, api, version)
    for error in validator.iter_errors(manifest):
        yield f"{called}, Kubernetes {version}: {error.json_path}: {error.message}"


@cache
def _of_operator(kind: str) -> Validator:
    return Draft7Validator(json.loads((_OPERATORS / f"{kind}.json").read_text()))


@cache
def _of_kubernetes(kind: str, api: str, version: str) -> Validator:
    group, _, name = api.rpartition("/")
    file = "-".join(filter(None, [kind.lower(), group.partition(".")[0], name])) + ".json"
    try:
        schema = _read(version, file)
    except FileNotFoundError:
        raise AssertionError(f"Kubernetes {version} knows no {kind} of {api}") from None
    registry = Registry().with_resource("https://kubernetes.io/api/_definitions.json", _definitions(version))
    return Draft202012Validator(schema, registry=registry)


@cache
def _definitions(version: str) -> Resource[Any]:
    return Resource.from_contents(_read(version, "_definitions.json"))


def _read(version: str, file: str) -> Any:
    return json.loads((_SCHEMAS / f"v{version}-local-strict" / file).read_text())
